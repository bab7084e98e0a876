/** Outcomes as the bodies of SQS messages: as few as hold them, each within what a queue and a reader take. */
import { type Delivery, receiveCountOf } from "./delivery.js";
import type { Failure } from "./failure.js";

const VERSION = 1;
const MAX_OUTCOMES = 1000;
/** Also the limit of queues whose own was not raised since SQS takes 1 MiB; a reader can hold ten of them. */
const MAX_BYTES = 262_144;

/** Who reports, and where it logged. */
export interface Consumer {
  name?: string | undefined;
  version?: string | undefined;
  log_group?: string | undefined;
  log_stream?: string | undefined;
  request_id?: string | undefined;
}

/** One outcome as `outcomes.schema.json` has it. */
export interface Outcome {
  queue: string;
  message_id: string;
  original_id?: string | undefined;
  result: "succeeded" | "failed" | "permanent";
  batch?: number | undefined;
  generation?: number | undefined;
  receive_count?: number | undefined;
  permanent?: true | undefined;
  parked_id?: string | undefined;
  interrupted?: true | undefined;
  retry_after?: number | undefined;
  error_class?: string | undefined;
  first_line?: string | undefined;
  cause?: string | undefined;
  traceback?: string | undefined;
}

/** What became of one delivery, in the order of the schema. Fields that say nothing are left out of a report. */
export function outcomeOf(
  delivery: Delivery,
  result: Outcome["result"],
  more: { failure?: Failure; permanent?: boolean; parkedId?: string | undefined; retryAfter?: number | undefined } = {},
): Outcome {
  return {
    queue: delivery.queue,
    message_id: delivery.messageId,
    original_id: delivery.trail?.id,
    result,
    batch: delivery.trail?.batch,
    generation: delivery.trail?.gen,
    receive_count: receiveCountOf(delivery),
    permanent: more.permanent || undefined,
    parked_id: more.parkedId,
    retry_after: more.retryAfter,
    error_class: more.failure?.errorClass,
    first_line: more.failure?.firstLine || undefined,
    cause: more.failure?.cause || undefined,
    traceback: more.failure?.traceback || undefined,
  };
}

/** The bodies that hold all `outcomes`, in their order; none for none. They are ASCII, so characters are bytes. */
export function reports(consumer: Consumer, outcomes: Iterable<Outcome>): string[] {
  const { name, version, log_group, log_stream, request_id } = consumer;
  const head = `{"version":${VERSION},"consumer":${ascii({ name, version, log_group, log_stream, request_id })},"outcomes":[`;
  const bodies: string[] = [];
  let few: string[] = [];
  let size = head.length;
  for (const one of outcomes) {
    const text = ascii(one);
    if (few.length > 0 && (few.length === MAX_OUTCOMES || size + text.length > MAX_BYTES - "]}".length)) {
      bodies.push(`${head}${few.join(",")}]}`);
      few = [];
      size = head.length;
    }
    few.push(text);
    size += text.length + ",".length;
  }
  if (few.length > 0) bodies.push(`${head}${few.join(",")}]}`);
  return bodies;
}

/** JSON without spaces, and with no character beyond ASCII. */
export function ascii(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
