/** Takes secrets, card numbers and parts of bodies out of texts before they leave the consumer. */
import { cut } from "./cause.js";
import { CARD, CARD_ISSUER, LITERAL, QUOTED, SECRETS, TELLING } from "./rules.js";

const IN_PLACE_OF_SECRET = "[secret]";
const IN_PLACE_OF_CARD = "[card]";
const IN_PLACE_OF_BODY = "[body]";

/** A shorter body, or a shorter value in one, counts only where it is quoted: it may be a word like any other. */
const LONG_BODY = 8;
const LONGEST_WORD = 16;
const LONG_VALUE = 6;
/** Any part of a body of at least twice as many characters is found, wherever it begins. */
const WINDOW = 12;
/** At so many places of a body, the longest part that it shares with a text is looked for. */
const MAX_PLACES = 8;
/** Characters of a text to look at once the whole body is out of it. A message can be as long as its body. */
const LOOKED_AT = 8_000;
/** More of a body is not taken apart: it would take longer than the failure is worth. */
const MAX_PARSED = 65_536;
const MAX_VALUES = 500;
/** The longest quoted part. */
const MAX_QUOTED = 400;
const WORD = /[\p{L}\p{N}]+/gu;

/** `text` with marks in the place of secrets and card numbers. In a line of code only literals are secrets. */
export function withoutSecrets(text: string, isCode = false): string {
  let clean = isCode ? text.replace(LITERAL, (one) => `${one[0]}${withoutSecrets(one.slice(1, -1))}${one.at(-1)}`) : text;
  for (const rule of SECRETS) {
    if (isCode && rule.isProse) continue;
    clean = clean.replace(rule.pattern, (found: string, kept: string, secret: string) =>
      rule.unless?.test(secret) || (rule.onlyIf && !rule.onlyIf.test(secret)) ? found : kept + IN_PLACE_OF_SECRET,
    );
  }
  return clean.replace(CARD, (found: string) => {
    const digits = found.replaceAll(/[^0-9]/g, "");
    return CARD_ISSUER.test(digits) && isLuhn(digits) ? IN_PLACE_OF_CARD : found;
  });
}

/**
 * The first characters of `text` with marks in the place of the body, of parts of it that it quotes, and of values of
 * `attributes`. The time that it takes grows with the length of the body, and not with how often the two are alike.
 */
export function withoutBody(text: string, body: string, attributes: readonly string[] = []): string {
  if (!text || !(body || attributes.length)) return text;
  const whole = withoutWhole(text, body);
  const values = valuesOf(body);
  const looked = cut(whole, LOOKED_AT);
  let clean = withoutQuoted(looked, body, values, attributes);
  const longest = [...(values?.size ? values : [body]), ...attributes].sort((one, other) => other.length - one.length);
  for (const value of longest) {
    if (value.length >= LONG_VALUE && value.length <= clean.length && TELLING.test(value)) {
      clean = replacedAsWord(clean, value);
    }
  }
  clean = withoutLongParts(clean, body);
  return looked.length === whole.length ? clean : withoutCutPart(clean);
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
  return replacedAll(replacedAll(text, body), JSON.stringify(body).slice(1, -1));
}

/** As `replaceAll`, which takes the product of both lengths for texts such as `aaa`, as long parts are compared at once. */
function replacedAll(text: string, part: string): string {
  const kept: string[] = [];
  let at = 0;
  let done = 0;
  while (at + part.length <= text.length) {
    if (text[at] === part[0] && text.slice(at, at + part.length) === part) {
      kept.push(text.slice(done, at), IN_PLACE_OF_BODY);
      at += part.length;
      done = at;
    } else at += 1;
  }
  return kept.join("") + text.slice(done);
}

/** The values in a body that is JSON, as texts; undefined for one that is not, or is too large to be taken apart. */
function valuesOf(body: string): Set<string> | undefined {
  if (body.length > MAX_PARSED || !/^\s*[[{]/.test(body)) return undefined;
  try {
    const found = new Set<string>();
    // A number as it is written: 4711998.00 is not found by its value.
    for (const one of body.matchAll(/[[:,]\s*(-?\d[\d.eE+-]*)/g)) add(found, one[1]!);
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

function withoutQuoted(text: string, body: string, values: Set<string> | undefined, attributes: readonly string[]): string {
  const parts = values ?? quotedIn(new Set([...text.matchAll(QUOTED)].map(([, ...groups]) => quoteOf(groups))), body);
  const told = new Set([...parts, ...attributes]);
  return text.replace(QUOTED, (found: string, ...groups: string[]) =>
    told.has(quoteOf(groups)) ? `${found[0]}${IN_PLACE_OF_BODY}${found[0]}` : found,
  );
}

function quoteOf(groups: (string | undefined)[]): string {
  return groups[0] ?? groups[1] ?? groups[2] ?? "";
}

/** The quotes whose words all stand in the body, among the same text. One walk through the body finds them all. */
function quotedIn(quotes: Set<string>, body: string): Set<string> {
  const sought = [...quotes].map((quote) => ({ quote, pieces: [...piecesOf(quote)] })).filter(({ pieces }) => pieces.length > 0);
  const wanted = new Set(sought.flatMap(({ pieces }) => pieces));
  if (wanted.size === 0) return wanted;
  const held = new Set<string>();
  for (const piece of piecesOf(body, wanted)) if (wanted.has(piece)) held.add(piece);
  return new Set(sought.filter(({ pieces }) => pieces.every((piece) => held.has(piece))).map(({ quote }) => quote));
}

/** Each word, or each that is wanted: alone, with the character on either side, and from the word before it on. */
function* piecesOf(text: string, wanted?: Set<string>): Generator<string> {
  let before: number | undefined;
  for (const { 0: word, index: start } of text.matchAll(WORD)) {
    const end = start + word.length;
    if (!wanted || wanted.has(word)) {
      yield* [word, text.slice(Math.max(0, start - 1), end), text.slice(start, end + 1)];
      if (before !== undefined && end - before <= MAX_QUOTED) yield text.slice(before, end);
    }
    before = start;
  }
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
  const places = placesOf(text, body);
  const kept: string[] = [];
  let at = 0;
  let done = 0;
  while (at + WINDOW <= text.length) {
    let [start, end] = [at, at];
    for (const place of places.get(text.slice(at, at + WINDOW)) ?? []) {
      const [first, last] = grown(text, body, at, place, at - done);
      if (last - first > end - start) [start, end] = [first, last];
    }
    if (end - start >= 2 * WINDOW) {
      kept.push(text.slice(done, start), IN_PLACE_OF_BODY);
      at = end;
      done = end;
    } else at += 1;
  }
  return kept.join("") + text.slice(done);
}

/** Where the body has parts of the text. It is cut into windows, as any part as long as two of them has a whole one. */
function placesOf(text: string, body: string): Map<string, number[]> {
  const places = new Map<string, number[]>();
  if (text.length < 2 * WINDOW) return places;
  const wanted = new Set<string>();
  for (let at = 0; at + WINDOW <= text.length; at += 1) wanted.add(text.slice(at, at + WINDOW));
  for (let at = 0; at + WINDOW <= body.length; at += WINDOW) {
    const part = body.slice(at, at + WINDOW);
    if (!wanted.has(part)) continue;
    const found = places.get(part) ?? [];
    if (found.length < MAX_PLACES) places.set(part, [...found, at]);
  }
  return places;
}

/** Start and end, in `text`, of the part that it shares with `body` at `place`; it begins at most `room` before `at`. */
function grown(text: string, body: string, at: number, place: number, room: number): [number, number] {
  let before = 0;
  let after = WINDOW;
  const first = Math.min(room, place);
  while (before < first && text[at - before - 1] === body[place - before - 1]) before += 1;
  const longest = Math.min(text.length - at, body.length - place);
  while (after < longest && text[at + after] === body[place + after]) after += 1;
  return [at - before, at + after];
}

/** Without the end, which may be a part of the body that is too short to be found because it was cut in two. */
function withoutCutPart(text: string): string {
  const marked = text.lastIndexOf(IN_PLACE_OF_BODY) + IN_PLACE_OF_BODY.length;
  return text.slice(0, Math.max(marked, text.length - 2 * WINDOW));
}
