// The kit by the vectors that every kit has to pass.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { causeOf } from "../dist/cause.js";
import { deliveryOf } from "../dist/delivery.js";
import { secondsOf } from "../dist/errors.js";
import { firstLineOf } from "../dist/failure.js";
import { idempotencyKey, PermanentError, Reporter, RetryableError } from "../dist/index.js";
import { parkingRequest } from "../dist/parking.js";
import { reports } from "../dist/report.js";
import { withoutBody, withoutSecrets } from "../dist/scrub.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../conformance/${name}.json`, import.meta.url), "utf8"));
const vectors = read("vectors");

const answers = {
  without_secrets: (given) => withoutSecrets(given.text, given.is_code),
  without_body: (given) => withoutBody(given.text, given.body, given.attributes),
  first_line: (given) => firstLineOf(given.message, given.body),
  cause: (given) => causeOf(given.error_class, given.first_line, given.frames, given.language),
  idempotency_key: (given) => idempotencyKey(given.message, given.queue ?? undefined),
  retry_after: (given) => secondsOf(given.header, new Date(given.now)) ?? null,
  reports: (given) => reports(given.consumer, given.outcomes),
  report_sizes: (given) => reports({}, Array(given.times).fill(given.outcome)).map((body) => body.length),
  parking: (given) => {
    const { error_class: errorClass, first_line: firstLine } = given.failure;
    return parkingRequest(given.url, deliveryOf(given.message, given.queue), { errorClass, firstLine }, new Date(0));
  },
};

for (const [section, answer] of Object.entries(answers)) {
  test(`the kit answers as the vectors say: ${section}`, () => {
    assert.ok(vectors[section].length > 0);
    for (const one of vectors[section]) assert.deepEqual(answer(one.given), one.answer, JSON.stringify(one.given));
  });
}

test("all sections but the decisions are asked for", () => {
  assert.deepEqual(new Set(Object.keys(vectors)), new Set(["note", "decisions", ...Object.keys(answers)]));
});

const PIECE = 8;
const leaks = (text, secret) => {
  const pieces = Array.from({ length: Math.max(1, secret.length - PIECE + 1) }, (_, at) => secret.slice(at, at + PIECE));
  return pieces.some((piece) => text.includes(piece));
};

test("no secret of the file is told, and no harmless text changed", () => {
  const { secrets, harmless } = read("secrets");
  const told = secrets.filter((one) => leaks(withoutSecrets(one.text.replaceAll("¦", "")), one.secret.replaceAll("¦", "")));
  assert.ok(secrets.length >= 200 && harmless.length >= 200);
  assert.deepEqual(told, []);
  assert.deepEqual(harmless.filter((text) => withoutSecrets(text) !== text), []);
});

const COMMON = [
  "queue", "message_id", "original_id", "result", "batch", "generation", "receive_count", "permanent", "parked_id",
  "retry_after", "first_line",
];

function common({ input }) {
  const trail = input.MessageAttributes?.RedriveTrail;
  if (trail) {
    const { why, ...rest } = JSON.parse(trail.StringValue);
    assert.ok(why.startsWith("PERMANENT: "));
    return { to: input.QueueUrl, body: input.MessageBody, trail: rest };
  }
  const { outcomes } = JSON.parse(input.MessageBody);
  const told = outcomes.map((one) => Object.fromEntries(COMMON.filter((name) => name in one).map((name) => [name, one[name]])));
  return { to: input.QueueUrl, outcomes: told };
}

function errorOf({ kind, message, after, errors }) {
  if (kind === "permanent") return new PermanentError(message);
  if (kind === "group") return new AggregateError(errors.map(errorOf), message);
  return kind === "retryable" ? new RetryableError(message, { after }) : new Error(message);
}

for (const { name, given, answer } of vectors.decisions) {
  test(`the kit decides as the vectors say: ${name}`, async () => {
    const calls = [];
    const client = {
      async send(command) {
        calls.push(command);
        if (given.refused.includes(calls.length - 1)) throw new Error("AccessDenied");
        return { MessageId: `sent-${calls.length - 1}` };
      },
    };
    let seconds = 0;
    const { outcome_queue_url: outcomeQueueUrl, parking_lot_url: parkingLotUrl, class_names_only: classNamesOnly } = given.settings;
    const reporter = new Reporter({
      client, outcomeQueueUrl, parkingLotUrl, classNamesOnly, deadline: 600_000, now: () => seconds * 1000, log: () => {},
    });
    for (const step of given.batches) {
      seconds += step.seconds;
      const batch = reporter.batch();
      for (const { message, queue, error } of step.messages) {
        if (error) await batch.failed(message, errorOf(error), queue ?? undefined);
        else batch.succeeded(message, queue ?? undefined);
      }
      await batch.send();
    }
    assert.deepEqual(calls.map(common), answer);
  });
}
