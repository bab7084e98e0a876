/** What a report says of an error: its class, its cause, the first line of its message, and where it happened. */
import { types } from "node:util";

import { causeOf, cut, type Frame } from "./cause.js";
import { groupedIn } from "./errors.js";
import { withoutBody, withoutSecrets } from "./scrub.js";

/** Characters, as the schema of reports has them; of a traceback, bytes. */
const MAX_ERROR_CLASS = 200;
const MAX_FIRST_LINE = 300;
const MAX_TRACEBACK = 4096;

/** Characters of a message that are looked at: no secret that begins within the first line is cut before it is found. */
const LOOKED_AT = 2_000;
/** Frames nearest to the error, and errors behind it: more is cut off again, and costs time. */
const FRAMES = 20;
const CAUSES = 5;

/** One error, fit for a report. `firstLine` and `traceback` are empty where none was asked for. */
export interface Failure {
  errorClass: string;
  firstLine: string;
  cause: string;
  traceback: string;
}

/** What to report of `thrown`, met while working on a message with this `body`. Anything can be thrown. */
export function failureOf(thrown: unknown, body: string, attributes: readonly string[] = [], hasTexts = true): Failure {
  const error = firstOf(thrown);
  const errorClass = classOf(error);
  const firstLine = hasTexts ? firstLineOf(messageOf(error), body, attributes) : "";
  return { errorClass, firstLine, cause: causeOf(errorClass, firstLine, framesOf(error)), traceback: "" };
}

/** What to report of an error that throws where it is read, as a getter or a proxy does. */
export function unreadable(error: unknown): Failure {
  const errorClass = types.isNativeError(error) ? "Error" : typeof error;
  return { errorClass, firstLine: "", cause: errorClass, traceback: "" };
}

/** The first line of an error's message as a report has it. */
export function firstLineOf(message: string, body: string, attributes: readonly string[] = []): string {
  const told = withoutBody(message.slice(0, LOOKED_AT + body.length).trim(), body, attributes);
  const line = cut(told.split("\n", 1)[0] ?? "", LOOKED_AT);
  return printable(cut(withoutSecrets(line), MAX_FIRST_LINE)).trimEnd();
}

/** The error with its frames, then the errors behind it; the first 4 KB of that. */
export function tracebackOf(error: unknown, body: string, attributes: readonly string[] = []): string {
  const places: string[] = [];
  let one: unknown = error;
  for (let depth = 0; depth < CAUSES && one !== undefined && one !== null; depth += 1) {
    const said = firstLineOf(messageOf(one), body, attributes);
    const head = `${depth ? "Caused by: " : ""}${classOf(one)}${said ? `: ${said}` : ""}`;
    places.push([head, ...linesOf(one).map((line) => withoutSecrets(line, true))].join("\n"));
    one = groupedIn(one)[0] ?? (one as { cause?: unknown }).cause;
  }
  return beginningOf(printable(places.join("\n")));
}

/** The first error of a group, which says more than the group does; any other error itself. */
function firstOf(error: unknown): unknown {
  let one = error;
  for (let depth = 0; depth < CAUSES; depth += 1) one = groupedIn(one)[0] ?? one;
  return one;
}

/** The class, by the name that it goes by. */
export function classOf(error: unknown): string {
  const told = error as { name?: unknown; constructor?: { name?: unknown } } | null | undefined;
  const named = typeof told?.name === "string" && !["", "Error"].includes(told.name) ? told.name : undefined;
  const kind = error instanceof Error ? told?.constructor?.name : undefined;
  const name = named ?? (typeof kind === "string" && kind ? kind : typeof error);
  return printable(cut(name.split("\n", 1)[0] ?? "", MAX_ERROR_CLASS));
}

/** `text` with a mark for every character that is neither printed nor a line's end or a tab. */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{C}\n\t]|(?! )[\p{Z}]/gu, "\uFFFD");
}

function messageOf(error: unknown): string {
  try {
    if (typeof error === "string") return error;
    const told = (error as { message?: unknown } | null | undefined)?.message;
    return typeof told === "string" ? told : "";
  } catch {
    return "";
  }
}

/** The lines of a stack that are frames, never those of the message. */
function linesOf(error: unknown): string[] {
  try {
    const stack = (error as { stack?: unknown }).stack;
    if (typeof stack !== "string") return [];
    const message = messageOf(error);
    const behind = message && stack.includes(message) ? stack.slice(stack.indexOf(message) + message.length) : stack;
    return behind.split("\n").filter((line) => /^ +at \S/.test(line)).slice(0, FRAMES).map((line) => cut(line, LOOKED_AT));
  } catch {
    return [];
  }
}

/** The calls that led to `error`, the last one first. */
function framesOf(error: unknown): Frame[] {
  return linesOf(error).map(frameOf);
}

/** One line of V8's: `at charge (file:///var/task/billing.mjs:41:11)`, or without a function's name. */
export function frameOf(line: string): Frame {
  const told = line.trim().replace(/^at /, "");
  const [, name = "", place = told] = /^(.*?) \((.*)\)$/.exec(told) ?? [];
  return { file: place.replace(/^async /, "").replace(/(?::\d+){1,2}$/, "").replace(/^file:\/\//, ""), function: name };
}

function beginningOf(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_TRACEBACK) return text;
  const kept = bytes.subarray(0, MAX_TRACEBACK).toString();
  return kept.slice(0, Math.max(kept.lastIndexOf("\n"), 0)) || cut(kept, MAX_TRACEBACK / 4);
}
