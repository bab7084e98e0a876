/** One message as its consumer got it: from Lambda's event or from `ReceiveMessage`, which spell the same differently. */

/** A record of Lambda's event, as far as it is looked at. */
export interface LambdaRecord {
  messageId: string;
  body: string;
  attributes?: Record<string, any> | undefined;
  messageAttributes?: Record<string, any> | undefined;
  eventSourceARN?: string;
}

/** A message of `ReceiveMessage`. */
export interface SqsMessage {
  MessageId?: string | undefined;
  Body?: string | undefined;
  ReceiptHandle?: string | undefined;
  Attributes?: Partial<Record<string, string>> | undefined;
  MessageAttributes?: Record<string, any> | undefined;
}

export type Message = LambdaRecord | SqsMessage;

/** A message attribute as the SDK takes it. */
export interface Attribute {
  DataType: string;
  StringValue?: string;
  BinaryValue?: Uint8Array;
}

/** What a redriven message carries about its past, as it stands in the attribute. */
export interface Trail {
  queue: string;
  id: string;
  n: number;
  seen: number;
  batch: number;
  gen: number;
}

/**
 * One message from the queue of this name. `trail` is undefined where it was not redriven, or carries another's.
 * `isWhole` is false where its poller did not ask for system attributes or, of a FIFO queue, not for its group, so that
 * they are missing here. A message without message attributes looks like one whose poller did not ask for them.
 */
export interface Delivery {
  queue: string;
  messageId: string;
  body: string;
  attributes: Record<string, Attribute>;
  system: Partial<Record<string, string>>;
  trail: Trail | undefined;
  isWhole: boolean;
}

export const TRAIL_ATTRIBUTE = "RedriveTrail";
const LARGEST_NUMBER = 1e12;

/**
 * The id by which a message is known however often it is redriven: what to be idempotent by. Throws a TypeError where
 * nothing names the queue: a record of Lambda's does, to a message of `ReceiveMessage` give its name, URL or ARN.
 */
export function idempotencyKey(message: Message, queue?: string): string {
  const delivery = deliveryOf(message, queue);
  return delivery.trail?.id ?? delivery.messageId;
}

/** Whether it looks redriven: quick, for what every message is asked. */
export function isCarryingTrail(message: Message): boolean {
  return TRAIL_ATTRIBUTE in (attributesOf(message) ?? {});
}

/** The delivery that `message` is. Throws a TypeError where nothing says of which queue. */
export function deliveryOf(message: Message, queue?: string): Delivery {
  const named = queue ?? (message as LambdaRecord).eventSourceARN;
  if (!named) throw new TypeError("a message of ReceiveMessage does not name its queue: give it");
  const name = named.split(/[/:]/).at(-1) ?? "";
  const isRecord = "messageId" in message;
  const given = Object.entries(attributesOf(message) ?? {});
  const attributes = Object.fromEntries(given.map(([key, one]) => [key, isRecord ? ofLambda(one) : sendable(one)]));
  const system = isRecord ? (message.attributes ?? {}) : message.Attributes;
  const trail = trailOf(attributes[TRAIL_ATTRIBUTE]?.StringValue);
  return {
    queue: name,
    messageId: String(isRecord ? message.messageId : message.MessageId),
    body: String((isRecord ? message.body : message.Body) ?? ""),
    attributes,
    system: system ?? {},
    trail: trail?.queue === name ? trail : undefined,
    isWhole: isRecord || Boolean(system && ("MessageGroupId" in system || !name.endsWith(".fifo"))),
  };
}

/** How often SQS has handed it out; undefined where the consumer did not ask. */
export function receiveCountOf(delivery: Delivery): number | undefined {
  const count = delivery.system["ApproximateReceiveCount"];
  return count ? Number(count) : undefined;
}

/** The texts of its attributes, which no report is to have. */
export function valuesOf(delivery: Delivery): string[] {
  const told = Object.entries(delivery.attributes).filter(([name]) => name !== TRAIL_ATTRIBUTE);
  return told.flatMap(([, { StringValue }]) => StringValue ?? []);
}

function attributesOf(message: Message): Record<string, any> | undefined {
  return "messageId" in message ? message.messageAttributes : (message as SqsMessage).MessageAttributes;
}

/** The trail in `text`; undefined where it can't be read as the re-driver would. */
function trailOf(text: string | undefined): Trail | undefined {
  try {
    const { queue, id, n, seen, batch, gen } = JSON.parse(text ?? "");
    const numbers = [n, seen, batch, gen].map(whole);
    if (queue === undefined || !/^[A-Za-z0-9_-]{1,100}$/.test(String(id))) return undefined;
    const isInBounds = [0, 2, 3].every((at) => numbers[at]! >= 0 && numbers[at]! <= LARGEST_NUMBER);
    if (numbers.some(Number.isNaN) || !isInBounds) return undefined;
    return { queue: String(queue), id: String(id), n: numbers[0]!, seen: numbers[1]!, batch: numbers[2]!, gen: numbers[3]! };
  } catch {
    return undefined;
  }
}

function whole(given: unknown): number {
  if (typeof given === "number") return Math.trunc(given);
  return typeof given === "string" && /^\s*-?\d+\s*$/.test(given) ? Number(given) : Number.NaN;
}

function ofLambda(attribute: Record<string, any>): Attribute {
  const kept = { DataType: String(attribute.dataType ?? "String") };
  if (typeof attribute.stringValue === "string") return { ...kept, StringValue: attribute.stringValue };
  return { ...kept, BinaryValue: Buffer.from(String(attribute.binaryValue ?? ""), "base64") };
}

/** Without the empty lists that an answer of SQS has and a request must not have. */
function sendable({ DataType, StringValue, BinaryValue }: Record<string, any>): Attribute {
  return { DataType, ...(StringValue === undefined ? {} : { StringValue }), ...(BinaryValue === undefined ? {} : { BinaryValue }) };
}
