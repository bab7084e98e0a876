// What is JavaScript's own: anything can be thrown, calls that hang, Lambda's handlers with and without Powertools.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { mock, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";

import { SendMessageCommand, SQSServiceException } from "@aws-sdk/client-sqs";
import { processPartialResponse, SqsFifoPartialProcessorAsync } from "@aws-lambda-powertools/batch";

import { firstLineOf, frameOf, tracebackOf } from "../dist/failure.js";
import { handlerOf, PermanentError, Reporter, RetryableError } from "../dist/index.js";
import { isPermanent, retryAfterOf } from "../dist/errors.js";
import { reportingFifoProcessor, reportingProcessor } from "../dist/powertools.js";
import { Allowance, DEADLINE, NoTimeError, quickClient, SilentError, Wire } from "../dist/wire.js";

const QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders";
const trail = (id) => JSON.stringify({ queue: "orders", id, n: 1, seen: 1767225600, batch: 7, gen: 3 });

function record(body, { id = body, redriven = false, arn = QUEUE, group } = {}) {
  const messageAttributes = redriven ? { RedriveTrail: { dataType: "String", stringValue: trail(id) } } : {};
  const attributes = { ApproximateReceiveCount: "1", SentTimestamp: "1768046400000", MessageGroupId: group };
  return { messageId: id, body, attributes, messageAttributes, eventSourceARN: arn, receiptHandle: "r" };
}

/** Works by what the body says. */
async function work({ body }) {
  if (body === "down") throw new Error("connection refused");
  if (body === "never") throw new PermanentError("no such product");
}

function scene(options = {}) {
  const calls = [];
  const client = { send: async ({ input }) => ({ MessageId: `sent-${calls.push(input)}` }) };
  const urls = { outcomeQueueUrl: "https://sqs/1/outcomes", parkingLotUrl: "https://sqs/1/lot" };
  const reporter = new Reporter({ client, ...urls, deadline: 600_000, log: () => {}, ...options });
  const outcomes = () => calls.filter((one) => one.QueueUrl.endsWith("outcomes")).flatMap((one) => JSON.parse(one.MessageBody).outcomes);
  return { calls, reporter, outcomes, to: () => calls.map((one) => one.QueueUrl.split("/").at(-1)) };
}

const RECORDS = [record("good", { redriven: true }), record("down"), record("never"), record("fresh")];
const EXPECTED = { batchItemFailures: [{ itemIdentifier: "down" }] };

for (const [name, handle] of [
  ["Powertools", (reporter) => (event) => processPartialResponse(event, work, reportingProcessor(reporter))],
  ["no Powertools", (reporter) => handlerOf(work, reporter)],
]) {
  test(`a Lambda function with ${name} reports its batch once, and parks what can never succeed`, async () => {
    const { reporter, outcomes, to } = scene();

    assert.deepEqual(await handle(reporter)({ Records: RECORDS }), EXPECTED);

    assert.deepEqual(to(), ["lot", "outcomes"]);
    const told = Object.fromEntries(outcomes().map((one) => [one.message_id, one.result]));
    assert.deepEqual(told, { good: "succeeded", down: "failed", never: "permanent" });
  });

  test(`a Lambda function with ${name} makes no call where there is nothing to report`, async () => {
    const { reporter, calls } = scene();

    await handle(reporter)({ Records: [record("fresh"), record("other")] });

    assert.deepEqual(calls, []);
  });
}

test("a batch of nothing but permanent failures has no failure", async () => {
  const { reporter } = scene();

  const answer = await processPartialResponse({ Records: [record("never")] }, work, reportingProcessor(reporter));

  assert.deepEqual(answer, { batchItemFailures: [] });
});

test("outcomes are reported although Powertools throws for a batch that failed as a whole", async () => {
  const { reporter, outcomes } = scene();

  await assert.rejects(processPartialResponse({ Records: [record("down")] }, work, reportingProcessor(reporter)));

  assert.deepEqual(outcomes().map((one) => one.result), ["failed"]);
});

for (const [name, handle] of [
  ["Powertools", (reporter) => (event) => processPartialResponse(event, work, reportingFifoProcessor(reporter))],
  ["no Powertools", (reporter) => handlerOf(work, reporter)],
]) {
  test(`of a FIFO batch what was not tried is not reported, with ${name}`, async () => {
    const { reporter, outcomes } = scene();
    const fifo = { arn: `${QUEUE}.fifo`, group: "a" };
    const records = [record("good", fifo), record("down", fifo), record("last", fifo)];

    const answer = await handle(reporter)({ Records: records });

    assert.deepEqual(answer.batchItemFailures.map((one) => one.itemIdentifier), ["down", "last"]);
    assert.deepEqual(outcomes().map((one) => one.message_id), ["down"]);
  });
}

test("no call is begun that could outlast the invocation", async () => {
  const { reporter, calls } = scene();
  const context = { getRemainingTimeInMillis: () => 1_199 };

  const answer = await handlerOf(work, reporter)({ Records: RECORDS }, context);

  assert.deepEqual(answer.batchItemFailures.map((one) => one.itemIdentifier).sort(), ["down", "never"]);
  assert.deepEqual(calls, []);
});

test("without Powertools a failure is in the log, with its stack and without its body", async () => {
  const lines = [];
  const { reporter } = scene({ log: (line) => lines.push(line) });
  const fail = ({ body }) => { throw new TypeError(`can't read ${body}`, { cause: new Error("token=abcd1234") }); };
  const hostile = () => { throw { get name() { throw new Error("no"); } }; };

  await handlerOf(fail, reporter)({ Records: [record("order-number-4711-of-ann")] });
  await handlerOf(hostile, reporter)({ Records: [record("m")] });

  assert.match(lines[0], /^message\.failed: order-number-4711-of-ann: TypeError: can't read \[body\]\n +at fail .*kit\.test/);
  assert.match(lines[0], /\nCaused by: Error: token=\[secret\]\n/);
  assert.equal(lines.at(-1), "message.failed: m: object");
});

const trap = () => { throw new Error("not for reading"); };
const hostile = (name) => Object.defineProperty(new AggregateError([], "m"), name, { get: trap });
for (const [what, thrown, told] of [
  ...["name", "cause", "errors", "constructor"].map((name) => [`a getter of ${name}`, hostile(name), "Error"]),
  ["a proxy", new Proxy({}, { get: trap, getPrototypeOf: trap }), "object"],
  ["an error without a name", Object.assign(new TypeError("m"), { name: "" }), "TypeError"],
]) {
  test(`what throws where it is read is still reported: ${what}`, async () => {
    const { reporter, outcomes } = scene();

    assert.deepEqual(await handlerOf(() => Promise.reject(thrown), reporter)({ Records: [record("m")] }), {
      batchItemFailures: [{ itemIdentifier: "m" }],
    });

    assert.deepEqual(outcomes().map((one) => [one.message_id, one.result, one.error_class]), [["m", "failed", told]]);
  });
}

test("a failure without an error is in the log, too", async () => {
  const lines = [];
  const { reporter } = scene({ log: (line) => lines.push(line) });

  await handlerOf(() => Promise.reject(), reporter)({ Records: [record("m")] });

  assert.equal(lines.at(-1), "message.failed: m: undefined");
});

for (const thrown of [undefined, null, "boom", 7, { code: 5 }, { name: "E", message: "m" }, Symbol("s"), () => {}]) {
  test(`whatever is thrown is a failure: ${String(thrown?.name ?? typeof thrown)}`, async () => {
    const { reporter, outcomes } = scene();
    const message = { MessageId: "m", Body: "{}" };
    const fail = () => { throw thrown; };

    await assert.rejects(async () => reporter.message(message, "orders", fail), () => true);

    assert.deepEqual(outcomes().map((one) => [one.message_id, one.result]), [["m", "failed"]]);
    assert.equal(typeof outcomes()[0].error_class, "string");
  });
}

test("an error is named by its class, its own code, and what it says", async () => {
  class OutOfStock extends Error {}
  const { reporter, outcomes } = scene();
  function reserve() { throw new OutOfStock("order 4711: password=hunter2"); }

  await assert.rejects(reporter.message({ MessageId: "m", Body: "{}" }, "orders", () => reserve()));

  const [told] = outcomes();
  assert.equal(told.error_class, "OutOfStock");
  assert.equal(told.first_line, "order 4711: password=[secret]");
  assert.equal(told.cause, "OutOfStock in kit.reserve: order *: password=*");
  assert.match(told.traceback, /^OutOfStock: order 4711: password=\[secret\]\n +at reserve \(/);
  assert.ok(!told.traceback.includes("hunter2"));
});

test("a traceback has the errors behind an error, and no line of a message", () => {
  const error = new Error("charge failed\n    at the counter (body)", { cause: new TypeError("no socket") });

  const text = tracebackOf(error, "a body");

  assert.match(text, /^Error: charge failed\n +at /);
  assert.match(text, /\nCaused by: TypeError: no socket\n +at /);
  assert.ok(!text.includes("counter"));
  assert.ok(Buffer.byteLength(tracebackOf(new Error("x", { cause: new Error("ü".repeat(9000)) }), "")) <= 4096);
});

test("a subclass of the kit's errors goes by its own name", async () => {
  class NoItems extends PermanentError {}
  class Busy extends RetryableError {}
  const { reporter, outcomes } = scene();
  const batch = reporter.batch();
  const errors = [new NoItems("none"), new Busy("later", { after: 9 }), new PermanentError("no"), new RetryableError("l", { after: 9 })];
  for (const [at, error] of errors.entries()) await batch.failed(record(`m${at}`), error);
  await batch.send();

  assert.deepEqual(outcomes().map((one) => one.error_class), ["NoItems", "Busy", "PermanentError", "RetryableError"]);
});

test("a group of errors is told by the first in it, and its traceback has both", async () => {
  const { reporter, outcomes } = scene();
  const connect = () => Promise.any([Promise.reject(new TypeError("no socket")), Promise.reject(new Error("late"))]);

  await assert.rejects(reporter.message({ MessageId: "m", Body: "{}" }, "orders", connect));
  const empty = new AggregateError([], "none");
  const itself = new AggregateError([], "itself");
  itself.errors.push(itself);
  for (const error of [empty, itself]) {
    await assert.rejects(reporter.message({ MessageId: "m", Body: "{}" }, "orders", () => { throw error; }));
  }

  const [told, ...others] = outcomes();
  assert.deepEqual([told.error_class, told.first_line], ["TypeError", "no socket"]);
  assert.match(told.cause, /^TypeError in kit.connect: no socket/);
  assert.match(told.traceback, /^AggregateError: All promises were rejected\nCaused by: TypeError: no socket\n +at connect /);
  assert.deepEqual(others.map((one) => [one.result, one.first_line]), [["failed", "none"], ["failed", "itself"]]);
});

test("frames are read with and without a function", () => {
  assert.deepEqual(frameOf("    at charge (file:///var/task/billing.mjs:41:11)"), { file: "/var/task/billing.mjs", function: "charge" });
  assert.deepEqual(frameOf("    at async file:///var/task/index.mjs:3:5"), { file: "/var/task/index.mjs", function: "" });
  assert.deepEqual(frameOf("    at new Order (/var/task/order.js:1:2)"), { file: "/var/task/order.js", function: "new Order" });
});

test("a SyntaxError is permanent where the body itself is no JSON", async () => {
  const { reporter, outcomes } = scene();
  for (const [body, parsed] of [["{", "{"], ["<h1>", "<h1>"], ["{}", "<h1>"]]) {
    await reporter.message({ MessageId: body, Body: body, Attributes: {} }, "orders", () => JSON.parse(parsed)).catch(() => {});
  }

  assert.deepEqual(outcomes().map((one) => one.result), ["permanent", "permanent", "failed"]);
});

for (const answer of ["<html>502 Bad Gateway</html>", "", "order-18"]) {
  test(`an answer that is no JSON is not the fault of a message in plain text: ${answer || "nothing"}`, async () => {
    const { reporter, outcomes, to } = scene();

    await handlerOf(() => new Response(answer).json(), reporter)({ Records: [record("order-17")] });

    assert.deepEqual(to(), ["outcomes"]);
    assert.deepEqual(outcomes().map((one) => [one.result, one.permanent]), [["failed", undefined]]);
  });
}

test("what is given as permanent is checked where it is given", () => {
  for (const permanent of [PermanentError, "ZodError", {}]) {
    assert.throws(() => new Reporter({ permanent }), { name: "TypeError", message: /^permanent: give an array of errors/ });
  }
  assert.throws(() => new Reporter({ permanent: ["ZodError", undefined] }), { message: /^permanent\[1\] is neither/ });
  assert.ok(new Reporter({ permanent: [PermanentError, "ZodError"] }));
});

test("a time to try again that is no number is refused where it is given", () => {
  for (const given of [120, undefined, {}, { after: "120" }]) {
    assert.throws(() => new RetryableError("busy", given), { name: "TypeError", message: /needs { after: seconds }/ });
  }
});

test("a message received without its attributes is not parked without them, and its poller is told how to ask", async () => {
  const lines = [];
  const { reporter, outcomes, to } = scene({ log: (line) => lines.push(line) });
  const stripped = { MessageId: "m", Body: "never", Attributes: undefined };

  await assert.rejects(reporter.message(stripped, "orders", () => work({ body: "never" })), PermanentError);

  assert.deepEqual(to(), ["outcomes"]);
  assert.deepEqual(outcomes().map((one) => [one.result, one.permanent, one.parked_id]), [["failed", true, undefined]]);
  assert.deepEqual(lines, [
    'message.not_parked: m: received without attributes; ReceiveMessage needs MessageAttributeNames: ["All"] ' +
      'and MessageSystemAttributeNames: ["All"]',
  ]);
});

test("without a parking lot a message without attributes is no fault of its poller", async () => {
  const lines = [];
  const { reporter } = scene({ log: (line) => lines.push(line), parkingLotUrl: "" });

  await reporter.message({ MessageId: "m", Body: "never" }, "orders", () => work({ body: "never" })).catch(() => {});

  assert.deepEqual(lines, []);
});

for (const [name, log] of [
  ["throws", () => { throw new Error("disk full"); }],
  ["rejects", async () => { throw new Error("disk full"); }],
]) {
  test(`a log that ${name} does not make a batch fail as a whole`, async () => {
    const { reporter } = scene({ log });

    assert.deepEqual(await handlerOf(work, reporter)({ Records: RECORDS }), EXPECTED);
    await new Promise(setImmediate); // a rejection that nobody handles would end the process by now
  });
}

test("a context that is null does not make a batch fail as a whole", async () => {
  const { reporter, outcomes } = scene();

  assert.deepEqual(await handlerOf(work, reporter)({ Records: RECORDS }, null), EXPECTED);

  assert.equal(outcomes().length, 3);
});

test("an error that names a time says when to try again", () => {
  const now = new Date("2026-01-10T12:00:00Z");

  assert.equal(retryAfterOf(new RetryableError("later", { after: 90 }), now), 90);
  assert.equal(retryAfterOf({ response: { headers: new Headers({ "Retry-After": "120" }) } }, now), 120);
  assert.equal(retryAfterOf({ response: { headers: { "Retry-After": "Sat, 10 Jan 2026 12:01:00 GMT" } } }, now), 60);
  assert.equal(retryAfterOf({ $response: { headers: { "retry-after": "7" } } }, now), 7);
  assert.equal(retryAfterOf(new Error("x", { cause: { retryAfter: 5 } }), now), 5);
  assert.equal(retryAfterOf(new RetryableError("later", { after: Infinity }), now), 43_200);
  assert.equal(retryAfterOf(new RetryableError("some day", { after: NaN }), now), undefined);
  assert.equal(retryAfterOf(new Error("x"), now), undefined);
});

test("an error that is in many groups is looked at once", () => {
  let asked = 0;
  const asking = Object.defineProperty(new Error("x"), "retryAfter", { get: () => void (asked += 1) });
  const nested = (error) => Array.from({ length: 4 }).reduce((one) => new AggregateError(Array(60).fill(one)), error);
  const itself = new AggregateError([], "itself");
  itself.errors.push(...Array(100_000).fill(itself), new RetryableError("later", { after: 9 }));

  assert.equal(retryAfterOf(nested(asking), new Date()), undefined);
  assert.equal(asked, 1);
  assert.equal(retryAfterOf(itself, new Date()), 9);
  assert.equal(isPermanent(itself, "a body"), false);
  assert.equal(isPermanent(nested(new PermanentError("no")), "a body"), true);
  assert.equal(isPermanent(new AggregateError([nested(new PermanentError("no")), new Error("down")]), "a body"), false);
  itself.errors = [itself];
  assert.equal(isPermanent(itself, "a body"), false);
});

const MIB = 1_048_576;
const NUMBERS = Array.from({ length: 8_000 }, (_, at) => `${at}.`).join("");
const ITEMS = Array.from({ length: 1_000 }, (_, at) => `{"id": ${at}, "price": "${at}.5 EUR"}, `).join("");
const ERRORS = Array.from({ length: 10_000 }, (_, at) => `items.${at}.price\n  not a number [input_value='${at}.5 EUR']\n`).join("");

for (const [name, message, body, told] of [
  ["that are alike", "ab".repeat(MIB / 2), "a".repeat(MIB), "ab".repeat(150)],
  ["that differ in the first character", "a".repeat(MIB), `b${"a".repeat(MIB - 1_000)}`, "[body]"],
  ["that differ in the last character", "a".repeat(MIB), `${"a".repeat(MIB - 1_000)}b`, "[body]"],
  ["with quotes of another text", "'aa' ".repeat(MIB / 5), "b".repeat(MIB), "'aa' ".repeat(60)],
  ["with quotes", "'aa' ".repeat(MIB / 5), "aa ".repeat(MIB / 3), `${"'[body]' ".repeat(33)}'[b`],
  ["of which one quotes the other", `bad: ${"x y ".repeat(MIB / 4)}!`, "x y ".repeat(MIB / 4), "bad: [body]!"],
  ["of which one names each item of the other", `10000 errors in 'order 7'\n${ERRORS}`, ITEMS.repeat(30), "10000 errors in 'order 7'"],
  ["of blanks", "no 'order' 4711", `a b${" ".repeat(MIB)}c d`, "no 'order' 4711"],
  ["of JSON's blanks", "order 47119981 unknown", `{"id":${" ".repeat(65_000)}47119981}`, "order [body] unknown"],
  ["of which one quotes most of the other", `cut: ${NUMBERS.slice(5, -5)} end`, NUMBERS, "cut: [body]"],
  ["of which one is cut within a part", `cut: ${NUMBERS.slice(0, 7_980)}# ${NUMBERS.slice(9_000, 9_500)}`, NUMBERS, "cut: [body]"],
]) {
  test(`what is told of long messages and long bodies ${name}`, () => {
    assert.equal(firstLineOf(message, body), told.trimEnd());
  });
}

test("a team may change or drop what is reported, and its fault tells no text", async () => {
  const beforeSend = (outcome) => {
    if (outcome.message_id === "drop") return undefined;
    if (outcome.message_id === "throw") throw new Error("a secret");
    return { ...outcome, cause: "the weather" };
  };
  const { reporter, outcomes } = scene({ beforeSend });
  const batch = reporter.batch();
  for (const id of ["keep", "drop", "throw"]) await batch.failed(record("x", { id }), new Error("down"));
  await batch.send();

  assert.deepEqual(outcomes().map((one) => [one.message_id, one.cause, one.first_line]), [
    ["keep", "the weather", "down"],
    ["throw", undefined, undefined],
  ]);
});

test("a change that would have to be awaited is refused where it is given", () => {
  assert.throws(() => new Reporter({ beforeSend: async (outcome) => outcome }), { name: "TypeError", message: /can't be async/ });
});

for (const [name, beforeSend] of [
  ["a promise", (outcome) => Promise.resolve(outcome)],
  ["a promise that fails", () => Promise.reject(new Error("a secret"))],
  ["a text", () => "down"],
]) {
  test(`a team's change that returns ${name} is a fault, and tells no text`, async () => {
    const lines = [];
    const { reporter, outcomes } = scene({ beforeSend, log: (line) => lines.push(line) });

    await assert.rejects(reporter.message({ MessageId: "m", Body: "x" }, "orders", () => work({ body: "down" })));

    assert.deepEqual(outcomes().map((one) => [one.message_id, one.error_class, one.first_line]), [["m", "Error", undefined]]);
    assert.deepEqual(lines, ["outcomes.not_reported: beforeSend: TypeError"]);
  });
}

test("a call that hangs is given up, and after it there is silence for half a minute", async () => {
  let now = 1_000;
  let calls = 0;
  let hangs = true;
  const client = { send: () => { calls += 1; return hangs ? new Promise(() => {}) : Promise.resolve({ MessageId: "m" }); } };
  const wire = new Wire(client, 10, () => now);

  await assert.rejects(wire.send([{}]), { name: "TimeoutError" });
  hangs = false;
  now += 29_999;
  await assert.rejects(wire.send([{}]), SilentError);
  now += 1;

  assert.deepEqual(await wire.send([{}]), ["m"]);
  assert.equal(calls, 2);
});

const AT_ONCE = 10;

function deferred() {
  let resolve;
  const promise = new Promise((given) => { resolve = given; });
  return { promise, resolve };
}

/** A client whose calls last until they are let go, and then end as `end` says. */
function held(end = async () => ({ MessageId: "m" })) {
  const { promise, resolve: letGo } = deferred();
  const client = { calls: 0, send: async () => { client.calls += 1; await promise; return end(); }, letGo };
  return client;
}

test("a call that can't begin in time is not made, and is no hang", async () => {
  const client = held();
  const wire = new Wire(client, 600_000, () => 1_000);
  const calls = Array.from({ length: AT_ONCE }, () => wire.send([{}]));

  await assert.rejects(wire.send([{}], new Allowance(10, () => 1_000)), NoTimeError);
  client.letGo();
  await Promise.all(calls);

  assert.deepEqual(await wire.send([{}]), ["m"]);
  assert.equal(client.calls, AT_ONCE + 1);
});

test("no other call of an allowance begins after one that failed", async () => {
  const client = held(async () => { throw new TypeError("refused"); });
  const allowance = new Allowance(600_000, () => 1_000);
  const wire = new Wire(client, 600_000, () => 1_000);
  const calls = Array.from({ length: 3 * AT_ONCE }, () => wire.send([{}], allowance));

  client.letGo();
  const ends = (await Promise.allSettled(calls)).map((one) => one.reason.name);

  assert.deepEqual(ends, [...Array(AT_ONCE).fill("TypeError"), ...Array(2 * AT_ONCE).fill("NoTimeError")]);
  assert.equal(client.calls, AT_ONCE);
});

test("a call that waits for its turn is not made after another was given up", async () => {
  const wire = new Wire(held(), 10, () => 1_000);
  const calls = Array.from({ length: AT_ONCE }, () => wire.send([{}]));

  const waiting = wire.send([{}], new Allowance(600_000, () => 1_000));

  await assert.rejects(waiting, SilentError);
  for (const call of calls) await assert.rejects(call, { name: "TimeoutError" });
});

test("an allowance passes while anybody waits, and half of it is for calls under way", async () => {
  let now = 1_000;
  const allowance = new Allowance(1_000, () => now);

  await allowance.during(async () => {
    now += 100;
    await allowance.during(async () => { now += 100; });
    now += 100;
  });
  now += 60_000;
  assert.deepEqual([allowance.left, allowance.toBegin], [700, 200]);
  await allowance.during(async () => { now += 300; });

  assert.deepEqual([allowance.left, allowance.toBegin], [400, 0]);
});

/** Calls that take 3% each of the time for parking, on a clock of their own. */
function unhasty() {
  const bodies = [];
  const clock = { now: 1_000, underWay: 0, most: 0 };
  const send = async ({ input }) => {
    clock.most = Math.max(clock.most, ++clock.underWay);
    await nextTurn();
    clock.underWay -= 1;
    clock.now += 18_000;
    return { MessageId: `sent-${bodies.push(input.MessageBody)}` };
  };
  return { ...scene({ client: { send }, now: () => clock.now }), bodies, clock };
}

const MANY = Array.from({ length: 100 }, (_, at) => record(`m${at}`));
const never = () => { throw new PermanentError("no such product"); };

test("of many messages at once just those are returned whose parking was not begun", async () => {
  const { reporter, bodies, clock } = unhasty();

  const answer = await handlerOf(never, reporter)({ Records: MANY });

  const report = JSON.parse(bodies.pop());
  const failed = answer.batchItemFailures.map((one) => one.itemIdentifier);
  assert.deepEqual([...bodies, ...failed].sort(), MANY.map((one) => one.body).sort());
  assert.equal(clock.most, AT_ONCE);
  // Begun in the first half, but nine that were under way then.
  assert.equal(bodies.length, 17 + AT_ONCE - 1);
  assert.deepEqual(report.outcomes.filter((one) => one.parked_id).map((one) => one.message_id).sort(), bodies.sort());
});

test("of many messages one by one no parking begins in the second half of its time", async () => {
  const { reporter, bodies } = unhasty();
  const batch = reporter.batch();

  const done = [];
  for (const one of MANY) done.push(await batch.failed(one, new PermanentError("no")));

  assert.deepEqual(done, [...Array(17).fill(true), ...Array(83).fill(false)]);
  assert.equal(bodies.length, 17);
});

test("time at work between messages is not time for parking", async () => {
  const { reporter, clock } = unhasty();
  const batch = reporter.batch();

  for (const one of MANY.slice(0, 10)) {
    clock.now += 600_000;
    assert.equal(await batch.failed(one, new PermanentError("no")), true);
  }
});

for (const code of ["ECONNRESET", "EPIPE"]) {
  // As the SDK names it.
  const closed = () => Object.assign(new Error("socket hang up"), { name: "TimeoutError", code });

  test(`a connection that was closed is tried once more, and is no hang: ${code}`, async () => {
    const ends = [closed(), undefined, closed(), closed(), undefined];
    const client = { send: async () => { const end = ends.shift(); if (end) throw end; return { MessageId: "m" }; } };
    const wire = new Wire(client, 600_000, () => 1_000);

    assert.deepEqual(await wire.send([{}]), ["m"]);
    await assert.rejects(wire.send([{}]), { code });
    assert.deepEqual(await wire.send([{}]), ["m"]);
  });
}

test("a time-out of the client is not tried again, and there is silence after it", async () => {
  let calls = 0;
  const client = { send: async () => { calls += 1; throw Object.assign(new Error("no answer"), { name: "TimeoutError", code: "ETIMEDOUT" }); } };
  const wire = new Wire(client, 600_000, () => 1_000);

  await assert.rejects(wire.send([{}]), { code: "ETIMEDOUT" });
  const allowance = new Allowance(600_000, () => 1_000);
  await assert.rejects(wire.send([{}], allowance), SilentError);

  assert.equal(calls, 1);
  assert.equal(allowance.toBegin, 0); // the batch asks no more
});

test("a call that was given up is not tried again", async () => {
  let calls = 0;
  const { promise: aborted, resolve: abort } = deferred();
  const send = async (_, { abortSignal }) => {
    calls += 1;
    abortSignal.addEventListener("abort", abort);
    await aborted;
    throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
  };

  await assert.rejects(new Wire({ send }, 10, () => 1_000).send([{}]), { name: "TimeoutError" });
  await aborted;
  await nextTurn();

  assert.equal(calls, 1);
});

/** The kit's own client, and a server on loopback that answers its requests with `answer`. */
async function endpoint(answer) {
  const server = createServer((request, response) => request.resume().on("end", () => answer(request, response)));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  Object.assign(process.env, { AWS_ENDPOINT_URL: url, AWS_REGION: "eu-west-1", AWS_ACCESS_KEY_ID: "k", AWS_SECRET_ACCESS_KEY: "s" });
  return { client: quickClient(), lot: `${url}/1/lot`, close: () => { server.closeAllConnections(); server.close(); } };
}

test("a message is parked although the connection of the last one was closed meanwhile", async (t) => {
  const sockets = new Set();
  const { client, lot, close } = await endpoint(({ socket }, response) => {
    if (sockets.has(socket)) return socket.destroy();
    sockets.add(socket);
    response.end(JSON.stringify({ MessageId: "parked", MD5OfMessageBody: createHash("md5").update("m").digest("hex") }));
  });
  t.after(close);
  const reporter = new Reporter({ client, parkingLotUrl: lot, deadline: 600_000, log: () => {} });

  for (const id of ["first", "second"]) {
    assert.equal(await reporter.message({ MessageId: id, Body: "m", Attributes: {} }, "orders", never), true);
  }

  assert.equal(sockets.size, 2);
});

test("a request that is never answered ends by itself", async (t) => {
  const asked = deferred();
  const { client, lot, close } = await endpoint(() => asked.resolve());
  t.after(close);
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());

  const call = client.send(new SendMessageCommand({ QueueUrl: lot, MessageBody: "m" }));
  const ended = assert.rejects(call, { name: "TimeoutError", code: "ETIMEDOUT" });
  await asked.promise;
  mock.timers.tick(DEADLINE);
  await nextTurn();
  close();

  await ended;
});

test("a report that can't be sent changes nothing for the consumer", async () => {
  const lines = [];
  const client = { send: async () => { throw new Error("a secret"); } };
  const { reporter } = scene({ client, log: (line) => lines.push(line) });

  assert.deepEqual(await handlerOf(work, reporter)({ Records: [record("good", { redriven: true })] }), { batchItemFailures: [] });

  assert.deepEqual(lines, ["outcomes.not_reported: Error"]);
});

for (const [fault, told] of [
  [Object.assign(new Error("connect ECONNREFUSED 10.0.0.1"), { code: "ECONNREFUSED" }), "Error ECONNREFUSED"],
  [new SQSServiceException({ name: "AccessDenied", $fault: "client", message: "no such policy" }), "AccessDenied: no such policy"],
  [new TypeError("body hunter2"), "TypeError"],
  [undefined, "undefined"],
]) {
  test(`the log says why a report could not be sent: ${told}`, async () => {
    const lines = [];
    const { reporter } = scene({ client: { send: () => Promise.reject(fault) }, log: (line) => lines.push(line) });

    await assert.rejects(reporter.message({ MessageId: "m", Body: "{}" }, "orders", () => Promise.reject(new Error("down"))));

    assert.deepEqual(lines, [`outcomes.not_reported: ${told}`]);
  });
}

test("without its variables the kit is not there", async () => {
  const reporter = Reporter.fromEnv({}, {});

  assert.equal(reporter.isOn, false);
  assert.deepEqual(await handlerOf(work, reporter)({ Records: RECORDS.slice(0, 1) }), { batchItemFailures: [] });
  assert.ok(reportingFifoProcessor(reporter) instanceof SqsFifoPartialProcessorAsync);
});
