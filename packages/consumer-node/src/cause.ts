/** The cause of an error as one would name it: its class, the consumer's own code that met it, and what it says. */
import { NOT_OWN, VARIABLE } from "./rules.js";

/** One call. `file` is its path; in Java, the class. */
export interface Frame {
  file: string;
  function: string;
}

const MAX_CAUSE = 100;
const MAX_PART = 40;

/** What runtimes write around a function's name. */
const AROUND = /^(?:async|new) |^Object\.|<[a-z]+>\.?| \[as .*\]$|^lambda\$|\$[0-9]+$|^(?:global|module)\./g;

/** The name of a cause, at most 100 characters. `frames` begin with the one that raised the error. */
export function causeOf(errorClass: string, firstLine: string, frames: Frame[], language = "javascript"): string {
  const name = cut(errorClass.split(/[.$:]/).at(-1) ?? "", MAX_PART) || "Error";
  const own = frames.find((one) => !NOT_OWN[language]!.test(one.file));
  const place = own ? placeOf(own, language) : "";
  const where = place ? `${name} in ${place}` : name;
  const what = normalised(firstLine);
  return cut(what ? `${where}: ${what}` : where, MAX_CAUSE).trimEnd();
}

/** `text` without what differs from one message to the next. */
export function normalised(text: string): string {
  return VARIABLE.reduce((done, [pattern, other]) => done.replace(pattern, other), text).trim();
}

/** The first characters of a text, none of them cut in two. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : [...text.slice(0, 2 * length)].slice(0, length).join("");
}

function placeOf(frame: Frame, language: string): string {
  const file = frame.file.replaceAll("\\", "/").split("/").at(-1) ?? "";
  const stem = language === "java"
    ? (file.split(".").at(-1) ?? "").replace(/\$.*$/, "")
    : (file.split("?")[0] ?? "").split(".")[0];
  const name = frame.function.replace(AROUND, "").replace(AROUND, "").trim();
  const place = [stem, name].filter(Boolean).join(".");
  return place.length <= MAX_PART ? place : place.slice(-MAX_PART);
}
