/**
 * The way to SQS: whoever sends waits for a second at most, whatever becomes of the call, and after that not at all.
 *
 * Only a few calls are made at once: more would wait for a socket, as if SQS hung. Half of the deadline is kept for calls
 * under way: a call that can't begin in the first half is not made at all, so its caller knows that nothing was sent.
 */
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import type { SendRequest } from "./parking.js";

/** Milliseconds for all calls of a report, or for all messages of a batch on their way to the parking lot. */
export const DEADLINE = 1_000;
/** Calls at once: a fifth of the sockets that the SDK opens. */
const AT_ONCE = 10;
/** Milliseconds without a call after one that was given up: its successor would hang as it did. */
export const SILENCE = 30_000;

/** The SDK names both time-outs, but the connection was closed: in Lambda, the last call's is often gone after a pause. */
const CLOSED = ["ECONNRESET", "EPIPE"];

/** As much of an SQSClient as is needed. */
export interface Sender {
  send(command: SendMessageCommand, options?: { abortSignal?: AbortSignal }): Promise<{ MessageId?: string | undefined }>;
}

/** Thrown instead of a call while SQS is left alone, since the last one had to be given up. */
export class SilentError extends Error {
  override name = "SilentError";
}

/** Thrown when the time for all calls is up. */
export class DeadlineError extends Error {
  override name = "TimeoutError";
}

/** Thrown when a call was not made, because it could not begin in time. */
export class NoTimeError extends Error {
  override name = "NoTimeError";
}

/** The time that calls may take together. It passes while anybody waits for one of them, and at no other time. */
export class Allowance {
  readonly #reserve: number;
  #left: number;
  #waiting = 0;
  #since = 0;
  #isClosed = false;

  constructor(
    millis: number,
    private readonly now: () => number,
  ) {
    this.#reserve = millis / 2;
    this.#left = millis;
  }

  /** Milliseconds for calls under way. */
  get left(): number {
    return this.#waiting > 0 ? this.#left - (this.now() - this.#since) : this.#left;
  }

  /** Milliseconds in which calls may still begin. */
  get toBegin(): number {
    return this.#isClosed ? 0 : Math.max(0, this.left - this.#reserve);
  }

  /** Let no other call begin. */
  close(): void {
    this.#isClosed = true;
  }

  async during<Answer>(wait: () => Promise<Answer>): Promise<Answer> {
    if (this.#waiting === 0) this.#since = this.now();
    this.#waiting += 1;
    try {
      return await wait();
    } finally {
      const { left } = this;
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#left = left;
    }
  }
}

export class Wire {
  #silentUntil = 0;
  #underWay = 0;
  /** Each begins a call that waits for its turn. */
  readonly #queue = new Set<() => void>();

  constructor(
    private readonly client: Sender,
    private readonly deadline: number,
    private readonly now: () => number,
  ) {}

  /** Send all, one after another; the ids that SQS gave them. */
  async send(requests: SendRequest[], allowance = new Allowance(this.deadline, this.now)): Promise<string[]> {
    return allowance.during(async () => {
      this.#check(allowance);
      await this.#turn(allowance);
      try {
        this.#check(allowance);
        return await this.#sendWithin(allowance.left, requests);
      } catch (fault) {
        // A queue that refuses or hangs would do so for every message of the batch.
        allowance.close();
        if ((fault as Error | undefined)?.name === "TimeoutError" && !isClosed(fault)) this.#silentUntil = this.now() + SILENCE;
        throw fault;
      } finally {
        this.#passOn();
      }
    });
  }

  #check(allowance: Allowance): void {
    if (this.now() < this.#silentUntil) {
      allowance.close();
      throw new SilentError();
    }
    if (allowance.toBegin === 0) throw new NoTimeError();
  }

  /** Wait until one of the few calls at once is over. */
  async #turn(allowance: Allowance): Promise<void> {
    if (this.#underWay < AT_ONCE) {
      this.#underWay += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer);
        this.#queue.delete(begin);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#queue.delete(begin);
        reject(new NoTimeError());
      }, allowance.toBegin);
      this.#queue.add(begin);
    });
  }

  #passOn(): void {
    const [begin] = this.#queue;
    if (begin) begin();
    else this.#underWay -= 1;
  }

  async #sendWithin(millis: number, requests: SendRequest[]): Promise<string[]> {
    const aborting = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new DeadlineError()), millis);
    });
    const calls = this.#sendAll(requests, aborting.signal);
    calls.catch(() => {}); // given up, it may fail unheard
    try {
      return await Promise.race([calls, deadline]);
    } finally {
      clearTimeout(timer);
      aborting.abort();
    }
  }

  async #sendAll(requests: SendRequest[], abortSignal: AbortSignal): Promise<string[]> {
    const ids: string[] = [];
    for (const request of requests) {
      const answer = await this.#sendOne(request, abortSignal);
      ids.push(String(answer.MessageId));
    }
    return ids;
  }

  /** Try once more after a closed connection. */
  async #sendOne(request: SendRequest, abortSignal: AbortSignal): ReturnType<Sender["send"]> {
    const send = () => {
      abortSignal.throwIfAborted();
      return this.client.send(new SendMessageCommand(request), { abortSignal });
    };
    try {
      return await send();
    } catch (fault) {
      if (!isClosed(fault)) throw fault;
      return await send();
    }
  }
}

function isClosed(fault: unknown): boolean {
  return CLOSED.includes(String((fault as { code?: unknown } | undefined)?.code));
}

/**
 * A client with short time-outs. Its sends carry no trace of the consumer's own, in which Lambda counts hops. A request
 * lasts as long as anybody waits: a message whose answer is not awaited may be parked, and still come back.
 */
export function quickClient(): Sender {
  // Without `throwOnRequestTimeout`, newer SDKs only warn.
  const requestHandler = { connectionTimeout: 300, requestTimeout: DEADLINE, throwOnRequestTimeout: true };
  const client = new SQSClient({ maxAttempts: 1, requestHandler });
  client.middlewareStack.remove("recursionDetectionMiddleware");
  return client;
}
