/** A message on its way from its consumer to the parking lot: body and attributes unchanged, trail and reason with it. */
import { type Attribute, type Delivery, TRAIL_ATTRIBUTE } from "./delivery.js";
import type { Failure } from "./failure.js";
import { ascii } from "./report.js";

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html */
const MAX_MESSAGE_BYTES = 1_048_576;
const MAX_MESSAGE_ATTRIBUTES = 10;

export interface SendRequest {
  QueueUrl: string;
  MessageBody: string;
  MessageAttributes?: Record<string, Attribute>;
  MessageSystemAttributes?: { AWSTraceHeader: Attribute };
  MessageGroupId?: string;
  MessageDeduplicationId?: string;
}

/** The SendMessage that parks a message, with its trail where it has room for one. */
export function parkingRequest(url: string, delivery: Delivery, failure: Failure, now: Date): SendRequest {
  const attributes = Object.fromEntries(
    Object.entries(delivery.attributes).filter(([name]) => name !== TRAIL_ATTRIBUTE),
  );
  const trail = { DataType: "String", StringValue: trailText(delivery, failure, now) };
  const sizes = Object.entries(attributes).map(([name, one]) => sizeOf(name, one));
  const size = sizes.reduce((sum, one) => sum + one, Buffer.byteLength(delivery.body) + sizeOf(TRAIL_ATTRIBUTE, trail));
  if (size <= MAX_MESSAGE_BYTES && sizes.length < MAX_MESSAGE_ATTRIBUTES) attributes[TRAIL_ATTRIBUTE] = trail;
  const request: SendRequest = { QueueUrl: url, MessageBody: delivery.body };
  if (Object.keys(attributes).length > 0) request.MessageAttributes = attributes;
  const header = withoutLineage(delivery.system["AWSTraceHeader"]);
  if (header) request.MessageSystemAttributes = { AWSTraceHeader: { DataType: "String", StringValue: header } };
  const group = delivery.system["MessageGroupId"];
  if (url.endsWith(".fifo")) {
    // Parked twice within five minutes, by a consumer that was killed in between, it is there once.
    return { ...request, MessageGroupId: group ?? delivery.queue, MessageDeduplicationId: delivery.messageId };
  }
  return group ? { ...request, MessageGroupId: group } : request;
}

function trailText(delivery: Delivery, failure: Failure, now: Date): string {
  const sent = delivery.system["SentTimestamp"];
  const seen = Math.trunc((sent ? Number(sent) : now.getTime()) / 1000);
  const fresh = { queue: delivery.queue, id: delivery.messageId, n: 0, seen, batch: 0, gen: 0 };
  const why = `PERMANENT: ${failure.errorClass}: ${failure.firstLine}`;
  return ascii({ ...(delivery.trail ?? fresh), why });
}

/** The X-Ray trace header without the part in which Lambda's recursion guard counts hops, and stops after 16. */
function withoutLineage(header: string | undefined): string {
  return (header ?? "").split(";").filter((part) => part && !part.startsWith("Lineage=")).join(";");
}

function sizeOf(name: string, attribute: Attribute): number {
  const value = attribute.StringValue === undefined
    ? (attribute.BinaryValue?.length ?? 0)
    : Buffer.byteLength(attribute.StringValue);
  return Buffer.byteLength(name) + Buffer.byteLength(attribute.DataType ?? "") + value;
}
