/** The kit for consumers in JavaScript and TypeScript: it tells the re-driver within seconds what became of a message, and why it failed. */
export { type Message, idempotencyKey } from "./delivery.js";
export { type ErrorKind, PERMANENT, PermanentError, RetryableError } from "./errors.js";
export { handlerOf } from "./lambda.js";
export type { Consumer, Outcome } from "./report.js";
export { Batch, type Options, Reporter } from "./reporter.js";
