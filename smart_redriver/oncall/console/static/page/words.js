// Times, counts and strangers' text, as people read them.
const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

export function span(seconds) {
  let rest = Math.max(0, Math.floor(seconds));
  const parts = [];
  for (const [unit, size] of UNITS) {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    if (amount || parts.length) parts.push(amount ? `${amount} ${unit}` : "");
  }
  return parts.slice(0, 2).filter(Boolean).join(" ") || "0 s";
}

// By the clock that the stack goes by, which need not be this machine's.
export function ago(stamp, now) {
  if (!stamp) return "";
  const seconds = (Date.parse(now) - Date.parse(stamp)) / 1000;
  return seconds >= 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
}

// What a letter waits for, and until when at the latest.
export function waits({ for: what, until }, now) {
  if (!until) return what;
  return Date.parse(until) > Date.parse(now) ? `${what}, at the latest ${ago(until, now)}` : `${what}, with the next pass`;
}

// A rate, in the unit in which it is no fraction.
export const pace = (perSecond) =>
  perSecond >= 1 ? `${perSecond.toFixed(0)} a second` : `${(60 * perSecond).toFixed(0)} a minute`;

export const clock = (stamp) => stamp.slice(11, 16);

export const count = (number) => number.toLocaleString("en");

export const letters = (number) => `${count(number)} ${number === 1 ? "letter" : "letters"}`;

// Characters that nobody sees, or that turn the order of others around, are named: a body could show what it is not.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export const visible = (text) =>
  text.replace(UNSEEN, (one) => `⟦U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);

// JSON with indentation, token by token: reading and writing it would change long numbers. Null for anything else.
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object") return null;
  } catch {
    return null;
  }
  let depth = 0;
  let out = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  const tokens = text.match(/"(?:\\.|[^"\\])*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  tokens.forEach((token, place) => {
    const isEmpty = /[{[]/.test(token) && /[}\]]/.test(tokens[place + 1]);
    const closesEmpty = /[}\]]/.test(token) && /^[{[]$/.test(tokens[place - 1]);
    if (token === "{" || token === "[") {
      depth += 1;
      out += isEmpty ? token : token + line();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      out += closesEmpty ? token : line() + token;
    } else if (token === ",") out += token + line();
    else if (token === ":") out += ": ";
    else out += token;
  });
  return out;
}
