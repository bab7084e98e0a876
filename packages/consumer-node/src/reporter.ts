/**
 * Reports what became of messages to the re-driver, and parks those that can never succeed.
 *
 * It never makes its consumer fail, nor wait for more than two seconds a batch: one for the report, one for all that is
 * parked. What can't be reported is logged, and what can't be parked fails like any other message.
 */
import { types } from "node:util";

import { type Delivery, deliveryOf, isCarryingTrail, type Message, valuesOf } from "./delivery.js";
import { checkKinds, type ErrorKind, isPermanent, PERMANENT, retryAfterOf } from "./errors.js";
import { type Failure, failureOf, tracebackOf, unreadable } from "./failure.js";
import { parkingRequest, type SendRequest } from "./parking.js";
import { type Consumer, type Outcome, outcomeOf, reports } from "./report.js";
import { Allowance, DEADLINE, quickClient, type Sender, Wire } from "./wire.js";

const NOT_REPORTED = "outcomes.not_reported";
const PARKED = "message.parked";
const NOT_PARKED = "message.not_parked";
const SWITCHED_OFF = "outcomes.switched_off";

/** A copy of a message that was received otherwise would be without its attributes and its group. */
const STRIPPED =
  'received without attributes; ReceiveMessage needs MessageAttributeNames: ["All"] and MessageSystemAttributeNames: ["All"]';

/** Of one batch, one a cause: a report is then billed as one request, of 64 KB. */
const MAX_TRACEBACKS = 10;
/** Milliseconds between two reports of a success that nobody else asks for. */
const BETWEEN_RECOVERIES = 30_000;

export interface Options {
  outcomeQueueUrl?: string | undefined;
  parkingLotUrl?: string | undefined;
  /** Who reports. */
  consumer?: Consumer;
  /** What no retry can heal: classes, or their names. */
  permanent?: readonly ErrorKind[];
  /** Changes each outcome, or drops it by returning undefined. */
  beforeSend?: (outcome: Outcome) => Outcome | undefined;
  /** Report no text of any error: only its class, and the consumer's file and function in its cause. */
  classNamesOnly?: boolean;
  /** An SQSClient in place of one with short time-outs. */
  client?: Sender;
  /** Milliseconds for all calls of one report, and for all messages of a batch that are parked. */
  deadline?: number;
  /** Milliseconds on a clock that never goes back. */
  now?: () => number;
  log?: (line: string) => void;
}

/** What a consumer has of this kit, made once where it starts. Without an outcome queue nothing is reported, without a parking lot nothing parked. */
export class Reporter {
  readonly deadline: number;
  readonly now: () => number;
  readonly log: (line: string) => void;
  readonly options: Options;
  readonly #wire: Wire | undefined;
  readonly #failing = new Set<string>();
  readonly #recoveredAt = new Map<string, number>();

  constructor(options: Options = {}) {
    if (types.isAsyncFunction(options.beforeSend)) throw new TypeError("beforeSend can't be async: nothing awaits it");
    checkKinds(options.permanent ?? PERMANENT);
    this.options = options;
    this.deadline = options.deadline ?? DEADLINE;
    this.now = options.now ?? (() => performance.now());
    const log = options.log ?? ((line: string) => console.warn(line));
    this.log = async (line) => {
      try {
        await log(line);
      } catch {
        // A log that fails is no reason for its consumer to fail.
      }
    };
    const client = options.client ?? (options.outcomeQueueUrl || options.parkingLotUrl ? this.#quickClient() : undefined);
    this.#wire = client && new Wire(client, this.deadline, this.now);
  }

  /** As `OUTCOME_QUEUE_URL`, `PARKING_LOT_URL` and, in Lambda, its own variables say. */
  static fromEnv(options: Options & { name?: string; version?: string } = {}, env: NodeJS.ProcessEnv = process.env): Reporter {
    return new Reporter({
      outcomeQueueUrl: env["OUTCOME_QUEUE_URL"],
      parkingLotUrl: env["PARKING_LOT_URL"],
      consumer: {
        name: options.name ?? env["AWS_LAMBDA_FUNCTION_NAME"],
        version: options.version ?? env["AWS_LAMBDA_FUNCTION_VERSION"],
        log_group: env["AWS_LAMBDA_LOG_GROUP_NAME"],
        log_stream: env["AWS_LAMBDA_LOG_STREAM_NAME"],
      },
      ...options,
    });
  }

  /** Whether there is anything that it can do. */
  get isOn(): boolean {
    return this.#wire !== undefined;
  }

  /** A batch of messages, whose outcomes go in one report when `send` is called. `hasTime` says whether a call may still take a second. */
  batch(hasTime: () => boolean = () => true): Batch {
    return new Batch(this, hasTime);
  }

  /**
   * Work on one message, and report at once. Errors go on to the caller, but for a permanent one of a message that is in
   * the parking lot now: true says that the message is done, and to be deleted.
   */
  async message(message: Message, queue: string, work: () => unknown): Promise<boolean> {
    const batch = this.batch();
    try {
      return await batch.message(message, queue, work);
    } finally {
      await batch.send();
    }
  }

  /** Whether the next success on the queue is news: its consumer has failed, and has not said so lately. */
  isAwaiting(queue: string): boolean {
    const last = this.#recoveredAt.get(queue);
    return this.#failing.has(queue) && (last === undefined || this.now() - last >= BETWEEN_RECOVERIES);
  }

  get isAnyFailing(): boolean {
    return this.#failing.size > 0;
  }

  /** Remember on which queues the consumer has failed, so that its next success is news. */
  haveFailed(outcomes: Outcome[]): void {
    for (const one of outcomes) if (one.result === "failed" && !one.permanent) this.#failing.add(one.queue);
  }

  wasTold(outcomes: Outcome[]): void {
    for (const one of outcomes) {
      if (one.result === "succeeded" && this.#failing.delete(one.queue)) this.#recoveredAt.set(one.queue, this.now());
    }
    this.haveFailed(outcomes);
  }

  parkingRequests(delivery: Delivery, failure: Failure): SendRequest[] {
    const url = this.options.parkingLotUrl;
    if (!url) return [];
    if (!delivery.isWhole) {
      this.log(`${NOT_PARKED}: ${delivery.messageId}: ${STRIPPED}`);
      return [];
    }
    return [parkingRequest(url, delivery, failure, new Date())];
  }

  reportRequests(outcomes: Outcome[], requestId?: string): SendRequest[] {
    const url = this.options.outcomeQueueUrl;
    if (!url) return [];
    const told = outcomes.map((one) => this.#toSend(one)).filter((one) => one !== undefined);
    return reports({ ...this.options.consumer, request_id: requestId }, told).map((body) => ({ QueueUrl: url, MessageBody: body }));
  }

  /** Send all within the deadline or the allowance; the ids that SQS gave them. */
  async call(requests: SendRequest[], allowance?: Allowance): Promise<string[]> {
    return this.#wire && requests.length > 0 ? this.#wire.send(requests, allowance) : [];
  }

  #toSend(outcome: Outcome): Outcome | undefined {
    const { beforeSend } = this.options;
    if (!beforeSend) return outcome;
    try {
      const told: unknown = beforeSend({ ...outcome }) ?? undefined;
      if (told instanceof Promise) told.catch(() => {}); // it may fail unheard
      if (told !== undefined && (typeof told !== "object" || told instanceof Promise)) throw new TypeError("no outcome");
      return told as Outcome | undefined;
    } catch (fault) {
      // A team's own code: what it was to take out may be in the texts.
      this.log(`${NOT_REPORTED}: beforeSend: ${nameOf(fault)}`);
      const { first_line: _, traceback: __, cause: ___, ...rest } = outcome;
      return rest;
    }
  }

  #quickClient(): Sender | undefined {
    try {
      return quickClient();
    } catch (fault) {
      this.log(`${SWITCHED_OFF}: ${nameOf(fault)}`);
      return undefined;
    }
  }
}

/** The messages of one invocation or one receive. */
export class Batch {
  readonly #reporter: Reporter;
  readonly #hasTime: () => boolean;
  #outcomes: Outcome[] = [];
  readonly #traced = new Set<string>();
  readonly #parkingTime: Allowance;

  constructor(reporter: Reporter, hasTime: () => boolean) {
    this.#reporter = reporter;
    this.#hasTime = hasTime;
    this.#parkingTime = new Allowance(reporter.deadline, reporter.now);
  }

  /** Work on one message; see `Reporter.message`. */
  async message(message: Message, queue: string, work: () => unknown): Promise<boolean> {
    try {
      await work();
    } catch (error) {
      if (await this.failed(message, error, queue)) return true;
      throw error;
    }
    this.succeeded(message, queue);
    return true;
  }

  /** Note a success: that of a redriven message, and the first one since the consumer failed. */
  succeeded(message: Message, queue?: string): void {
    const reporter = this.#reporter;
    if (!(reporter.isOn && isCarryingTrail(message)) && !reporter.isAnyFailing) return;
    this.#logged(NOT_REPORTED, () => {
      const delivery = deliveryOf(message, queue);
      const isNoted = this.#outcomes.some((one) => one.result === "succeeded" && one.queue === delivery.queue);
      if (delivery.trail || (!isNoted && reporter.isAwaiting(delivery.queue))) {
        this.#outcomes.push(outcomeOf(delivery, "succeeded"));
      }
    });
  }

  /** Note a failure, and park the message if it is permanent. Whether it is parked, and so done. Anything can have been thrown. */
  async failed(message: Message, error: unknown, queue?: string): Promise<boolean> {
    const reporter = this.#reporter;
    if (!reporter.isOn) return false;
    try {
      const delivery = deliveryOf(message, queue);
      const { permanent, failure, retryAfter } = this.#knownOf(error, delivery);
      const parkedId = permanent ? await this.#park(delivery, failure) : undefined;
      const result = parkedId === undefined ? "failed" : "permanent";
      this.#outcomes.push(outcomeOf(delivery, result, { failure, permanent, parkedId, retryAfter }));
      return parkedId !== undefined;
    } catch (fault) {
      reporter.log(`${NOT_REPORTED}: ${nameOf(fault)}`);
      return false;
    }
  }

  /** Report what was noted; no call where that is nothing. */
  async send(requestId?: string): Promise<void> {
    const outcomes = this.#outcomes;
    this.#outcomes = [];
    this.#traced.clear();
    if (outcomes.length === 0) return;
    this.#reporter.haveFailed(outcomes);
    try {
      if (!this.#isInTime()) throw new RangeError("no time left");
      await this.#reporter.call(this.#reporter.reportRequests(outcomes, requestId));
      this.#reporter.wasTold(outcomes);
    } catch (fault) {
      this.#reporter.log(`${NOT_REPORTED}: ${nameOf(fault)}`);
    }
  }

  /** Whether it is permanent, what to report, and when to try again: its kind alone, where it can't be read. */
  #knownOf(error: unknown, delivery: Delivery): { permanent: boolean; failure: Failure; retryAfter?: number | undefined } {
    try {
      const permanent = isPermanent(error, delivery.body, this.#reporter.options.permanent ?? PERMANENT);
      const retryAfter = permanent ? undefined : retryAfterOf(error, new Date());
      return { permanent, failure: this.#failureOf(error, delivery), retryAfter };
    } catch {
      return { permanent: false, failure: unreadable(error) }; // anybody's properties
    }
  }

  /** With its traceback, if it is the first of its cause: that of the others is the same. */
  #failureOf(error: unknown, delivery: Delivery): Failure {
    const hasTexts = !this.#reporter.options.classNamesOnly;
    const values = valuesOf(delivery);
    const failure = failureOf(error, delivery.body, values, hasTexts);
    if (!hasTexts || this.#traced.has(failure.cause) || this.#traced.size >= MAX_TRACEBACKS) return failure;
    this.#traced.add(failure.cause);
    return { ...failure, traceback: tracebackOf(error, delivery.body, values) };
  }

  async #park(delivery: Delivery, failure: Failure): Promise<string | undefined> {
    const reporter = this.#reporter;
    if (this.#parkingTime.toBegin <= 0 || !this.#isInTime()) return undefined;
    try {
      const [id] = await reporter.call(reporter.parkingRequests(delivery, failure), this.#parkingTime);
      // Nobody else will log it: to its consumer the message is a success.
      if (id) reporter.log(`${PARKED}: ${delivery.messageId}: ${failure.errorClass}: ${failure.firstLine}`);
      return id;
    } catch (fault) {
      reporter.log(`${NOT_PARKED}: ${delivery.messageId}: ${nameOf(fault)}`);
      return undefined;
    }
  }

  #isInTime(): boolean {
    try {
      return this.#hasTime();
    } catch {
      return true; // no context was given, or a stand-in of somebody's tests
    }
  }

  #logged(event: string, act: () => void): void {
    try {
      act();
    } catch (fault) {
      this.#reporter.log(`${event}: ${nameOf(fault)}`);
    }
  }
}

/** AWS's own message. Of other errors only name and code, such as ENOTFOUND, because their text can quote the request. */
function nameOf(fault: unknown): string {
  if (fault instanceof RangeError) return fault.message;
  const { name = typeof fault, code, message, $fault } = Object(fault) as Record<string, unknown>;
  return $fault ? `${name}: ${message}` : [name, code].filter((one) => typeof one === "string").join(" ");
}
