/** Which errors no retry can heal, and which say when to try again. */

/** Thrown by a consumer for a message that can never succeed: it goes to the parking lot at once. */
export class PermanentError extends Error {
  override name = this.constructor === PermanentError ? "PermanentError" : this.constructor.name; // as minifiers rename
}

/** Thrown by a consumer for a message that is not to be tried again for `after` seconds; that costs no strike. */
export class RetryableError extends Error {
  override name = this.constructor === RetryableError ? "RetryableError" : this.constructor.name;
  readonly after: number;

  constructor(message: string, options: ErrorOptions & { after: number }) {
    if (typeof options?.after !== "number") throw new TypeError("RetryableError needs { after: seconds } behind its message");
    super(message, options);
    this.after = options.after;
  }
}

/** `instanceof` also knows errors of the package's other build: an app that both imports and requires it loads both. */
function knowBothBuilds(kind: Function, name: string): void {
  const mark = Symbol.for(`@smart-redriver/consumer ${name}`);
  const isOne = function (this: Function, error: unknown): boolean {
    return this === kind ? mark in Object(error) : Function.prototype[Symbol.hasInstance].call(this, error);
  };
  Object.defineProperty(kind.prototype, mark, { value: true });
  Object.defineProperty(kind, Symbol.hasInstance, { value: isOne });
}

knowBothBuilds(PermanentError, "PermanentError");
knowBothBuilds(RetryableError, "RetryableError");

/** An error's class, or its name where naming it must not import it. */
export type ErrorKind = string | (abstract new (...given: never[]) => unknown);

/** The permanent kinds, unless a consumer names others. A SyntaxError counts where `JSON.parse` throws the same of the body. */
export const PERMANENT: readonly ErrorKind[] = [PermanentError, SyntaxError, "ZodError", "ValidationError"];

/** Throws a TypeError for one kind without an array, and for anything that is no kind. */
export function checkKinds(kinds: readonly ErrorKind[]): void {
  if (!Array.isArray(kinds)) throw new TypeError("permanent: give an array of errors, also for one");
  const wrong = kinds.findIndex((kind) => typeof kind !== "string" && typeof kind !== "function");
  if (wrong >= 0) throw new TypeError(`permanent[${wrong}] is neither an error's class nor a name`);
}

const MAX_RETRY_AFTER = 43_200;
const CAUSES = 5;

/** Whether no retry can heal `error`; of a group of errors, none that is in it. It looks at each error once. */
export function isPermanent(error: unknown, body: string, kinds: readonly ErrorKind[] = PERMANENT): boolean {
  let ofBody: string | undefined | null = null; // not parsed yet
  let hasOne = false;
  const met = new Set([error]);
  for (const one of met) {
    // Text that is no JSON may as well be the answer of a service that is down, and that heals.
    const isOfService = one instanceof SyntaxError && one.message !== (ofBody === null ? (ofBody = messageOfParsing(body)) : ofBody);
    if (!isOfService && kinds.some((kind) => (typeof kind === "string" ? namesOf(one).includes(kind) : one instanceof kind))) {
      hasOne = true;
      continue;
    }
    const grouped = groupedIn(one);
    if (grouped.length === 0) return false;
    for (const other of grouped) met.add(other);
  }
  return hasOne;
}

/** The errors in a group, as `Promise.any` makes one; none of any other error. */
export function groupedIn(error: unknown): unknown[] {
  return error instanceof AggregateError && Array.isArray(error.errors) ? error.errors : [];
}

/**
 * Seconds until the message should be tried again, as the error, the last of its group or one behind it says; at most 12
 * hours. It looks at each error once, and `met` has those that it looked at.
 */
export function retryAfterOf(error: unknown, now: Date, depth = CAUSES, met = new Set<unknown>()): number | undefined {
  if (!error || depth === 0 || met.has(error)) return undefined;
  met.add(error);
  const seconds = namedBy(error, now);
  if (seconds !== undefined && !Number.isNaN(seconds)) return Math.max(0, Math.min(Math.trunc(seconds), MAX_RETRY_AFTER));
  const told = groupedIn(error).map((one) => retryAfterOf(one, now, depth - 1, met)).filter((one) => one !== undefined);
  if (told.length > 0) return told.reduce((one, other) => Math.max(one, other));
  return retryAfterOf((error as { cause?: unknown }).cause, now, depth - 1, met);
}

/** What `Retry-After` says: seconds, or a date; undefined where it is neither. */
export function secondsOf(header: string, now: Date): number | undefined {
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  // V8 takes almost any text for a date. All dates of HTTP begin with the name of a day.
  const at = /^\s*[a-z]{3}/i.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : (at - now.getTime()) / 1000;
}

function namedBy(error: unknown, now: Date): number | undefined {
  try {
    const told = error as Record<string, any>;
    if (error instanceof RetryableError) return told.after;
    for (const name of ["retryAfter", "retry_after", "retryAfterSeconds"]) {
      if (typeof told[name] === "number") return told[name];
    }
    // As axios, undici and got, fetch wrappers and the AWS SDK keep the answer with their errors.
    for (const headers of [told.response?.headers, told.headers, told.$response?.headers]) {
      const value = typeof headers?.get === "function" ? headers.get("retry-after") : headerIn(headers);
      if (value !== undefined && value !== null) return secondsOf(String(value), now);
    }
  } catch {
    // Anybody's properties.
  }
  return undefined;
}

function headerIn(headers: unknown): unknown {
  const found = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === "retry-after");
  return found?.[1];
}

/** The message of the error that `JSON.parse` throws of the body, which quotes it; undefined where the body is JSON. */
function messageOfParsing(body: string): string | undefined {
  try {
    JSON.parse(body);
    return undefined;
  } catch (error) {
    return (error as SyntaxError).message;
  }
}

function namesOf(error: unknown): string[] {
  const names: string[] = [];
  const named = (error as { name?: unknown } | null | undefined)?.name;
  if (typeof named === "string") names.push(named);
  for (let kind = Object(error).constructor; kind?.name; kind = Object.getPrototypeOf(kind)) names.push(kind.name);
  return names;
}
