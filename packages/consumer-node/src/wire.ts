/** The way to SQS: whoever sends waits for a second at most, whatever becomes of the call, and after that not at all. */
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import type { SendRequest } from "./parking.js";

/** Milliseconds for all calls of a report, or for one message on its way to the parking lot. */
export const DEADLINE = 1_000;
/** Milliseconds without a call after one that was given up: its successor would hang as it did. */
export const SILENCE = 30_000;

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

export class Wire {
  #silentUntil = 0;

  constructor(
    private readonly client: Sender,
    private readonly deadline: number,
    private readonly now: () => number,
  ) {}

  /** Send all, one after another; the ids that SQS gave them. */
  async send(requests: SendRequest[]): Promise<string[]> {
    if (this.now() < this.#silentUntil) throw new SilentError();
    const aborting = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new DeadlineError()), this.deadline);
    });
    const calls = this.#sendAll(requests, aborting.signal);
    calls.catch(() => {}); // given up, it may fail unheard
    try {
      return await Promise.race([calls, deadline]);
    } catch (fault) {
      if ((fault as Error).name === "TimeoutError") this.#silentUntil = this.now() + SILENCE;
      throw fault;
    } finally {
      clearTimeout(timer);
      aborting.abort();
    }
  }

  async #sendAll(requests: SendRequest[], abortSignal: AbortSignal): Promise<string[]> {
    const ids: string[] = [];
    for (const request of requests) {
      abortSignal.throwIfAborted();
      const answer = await this.client.send(new SendMessageCommand(request), { abortSignal });
      ids.push(String(answer.MessageId));
    }
    return ids;
  }
}

/** A client with short time-outs. Its sends carry no trace of the consumer's own, in which Lambda counts hops. */
export function quickClient(): Sender {
  const client = new SQSClient({ maxAttempts: 1, requestHandler: { connectionTimeout: 300, requestTimeout: 600 } });
  client.middlewareStack.remove("recursionDetectionMiddleware");
  return client;
}
