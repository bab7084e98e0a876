/** Takes secrets, card numbers and parts of bodies out of texts before they leave the consumer. */
import { CARD, CARD_ISSUER, QUOTED, SECRETS, TELLING } from "./rules.js";

const IN_PLACE_OF_SECRET = "[secret]";
const IN_PLACE_OF_CARD = "[card]";
const IN_PLACE_OF_BODY = "[body]";

/** A shorter body, or a shorter value in one, counts only where it is quoted: it may be a word like any other. */
const LONG_BODY = 8;
const LONGEST_WORD = 16;
const LONG_VALUE = 6;
/** Any part of a body of at least twice as many characters is found, wherever it begins. */
const WINDOW = 12;
/** More of a body is not taken apart: it would take longer than the failure is worth. */
const MAX_PARSED = 65_536;
const MAX_VALUES = 500;

/** `text` with marks in the place of secrets and card numbers. In a line of code only literals are secrets. */
export function withoutSecrets(text: string, isCode = false): string {
  let clean = text;
  for (const rule of SECRETS) {
    if (isCode && rule.isProse) continue;
    clean = clean.replace(rule.pattern, (found: string, kept: string, secret: string) =>
      rule.unless?.test(secret) || (rule.onlyIf && !rule.onlyIf.test(secret)) ? found : kept + IN_PLACE_OF_SECRET,
    );
  }
  return clean.replace(CARD, (found: string) => {
    const digits = found.replaceAll(/[ -]/g, "");
    return CARD_ISSUER.test(digits) && isLuhn(digits) ? IN_PLACE_OF_CARD : found;
  });
}

/** `text` with marks in the place of the body and of parts of it that it quotes. */
export function withoutBody(text: string, body: string): string {
  if (!text || !body) return text;
  const values = valuesOf(body);
  let clean = withoutWhole(text, body).replace(QUOTED, (found: string, ...groups: string[]) => {
    const quoted = groups[0] ?? groups[1] ?? groups[2] ?? "";
    const isOfBody = values ? values.has(quoted) : holdsWord(body, quoted);
    return isOfBody ? `${found[0]}${IN_PLACE_OF_BODY}${found[0]}` : found;
  });
  const longest = [...(values?.size ? values : [body])].sort((one, other) => other.length - one.length);
  for (const value of longest) {
    if (value.length >= LONG_VALUE && value.length <= clean.length && TELLING.test(value)) {
      clean = replacedAsWord(clean, value);
    }
  }
  return withoutLongParts(clean, body);
}

/** Whether the check digit is right. https://www.iso.org/standard/70484.html, annex B. */
function isLuhn(digits: string): boolean {
  let sum = 0;
  [...digits].reverse().forEach((one, at) => {
    const doubled = at % 2 ? 2 * Number(one) : Number(one);
    sum += doubled > 9 ? doubled - 9 : doubled;
  });
  return sum % 10 === 0;
}

function withoutWhole(text: string, body: string): string {
  const isWord = body.length < LONGEST_WORD && /^\p{L}+$/u.test(body);
  if (body.length < LONG_BODY || body.length > text.length || isWord) return text;
  const escaped = JSON.stringify(body).slice(1, -1);
  return text.replaceAll(body, IN_PLACE_OF_BODY).replaceAll(escaped, IN_PLACE_OF_BODY);
}

/** The values in a body that is JSON, as texts; undefined for one that is not, or is too large to be taken apart. */
function valuesOf(body: string): Set<string> | undefined {
  if (body.length > MAX_PARSED || !/^\s*[[{]/.test(body)) return undefined;
  try {
    const found = new Set<string>();
    // A number as it is written: 4711998.00 is not found by its value.
    for (const one of body.matchAll(/(?<=[[:,]\s*)-?\d[\d.eE+-]*/g)) add(found, one[0]);
    addLeaves(found, JSON.parse(body));
    return found;
  } catch {
    return undefined;
  }
}

function add(found: Set<string>, value: string): void {
  if (found.size < MAX_VALUES) found.add(value);
}

function addLeaves(found: Set<string>, value: unknown): void {
  if (typeof value === "string") add(found, value);
  else if (typeof value === "object" && value !== null) {
    for (const one of Object.values(value)) addLeaves(found, one);
  }
}

function holdsWord(body: string, part: string): boolean {
  const at = body.indexOf(part);
  return at >= 0 && standsAlone(body, at, at + part.length);
}

function standsAlone(text: string, start: number, end: number): boolean {
  return !/[\p{L}\p{N}]/u.test(text.slice(Math.max(0, start - 1), start) + text.slice(end, end + 1));
}

function replacedAsWord(text: string, value: string): string {
  let clean = text;
  let at = clean.indexOf(value);
  while (at >= 0) {
    let end = at + value.length;
    if (standsAlone(clean, at, end)) {
      clean = clean.slice(0, at) + IN_PLACE_OF_BODY + clean.slice(end);
      end = at + IN_PLACE_OF_BODY.length;
    }
    at = clean.indexOf(value, end);
  }
  return clean;
}

/** Without parts of the body that are long enough to be no accident, wherever they begin in it. */
function withoutLongParts(text: string, body: string): string {
  let clean = text;
  let at = 0;
  while (at + WINDOW <= clean.length) {
    const found = body.indexOf(clean.slice(at, at + WINDOW));
    if (found < 0) {
      at += WINDOW;
      continue;
    }
    let before = 0;
    let after = 0;
    while (before < Math.min(at, found) && clean[at - before - 1] === body[found - before - 1]) before += 1;
    const longest = Math.min(clean.length - at, body.length - found);
    while (after < longest && clean[at + after] === body[found + after]) after += 1;
    if (before + after >= 2 * WINDOW) {
      clean = clean.slice(0, at - before) + IN_PLACE_OF_BODY + clean.slice(at + after);
      at = at - before + IN_PLACE_OF_BODY.length;
    } else at += WINDOW;
  }
  return clean;
}
