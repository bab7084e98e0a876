// What several views have.
import { useLayoutEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { address } from "./route.js";
import { count } from "./words.js";

export function Trouble({ look }) {
  const { fault, at } = look;
  if (!fault) return null;
  return html`<p class="trouble" role="alert">
    ${fault.message} ${at && html`<span>What you see is of ${at.toLocaleTimeString()}.</span>`}
    <button type="button" onClick=${look.again}>Try again</button>
  </p>`;
}

export function Waiting({ look, what }) {
  if (look.value || look.fault) return null;
  return html`<p class="waiting" role="status">Reading ${what}…</p>`;
}

export const Link = ({ to, query, children, ...more }) =>
  html`<a href=${address(to, query)} ...${more}>${children}</a>`;

const TONES = { OPEN: "bad", HALF_OPEN: "careful", CLOSED: "good" };

export const Badge = ({ tone, children }) => html`<span class=${`badge ${tone ?? "plain"}`}>${children}</span>`;

export const Circuit = ({ state, isPaused }) =>
  html`<${Badge} tone=${isPaused ? "careful" : TONES[state]}>${isPaused ? `${state}, paused` : state}<//>`;

// A course of figures, small. What it shows is said, too, for those who do not see it.
export function Sparkline({ values, what }) {
  if (!values?.length) return html`<span class="faint">no figures yet</span>`;
  const most = Math.max(1, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map((value, place) => `${(place * step).toFixed(1)},${(23 - (22 * value) / most).toFixed(1)}`);
  const told = `${what}: now ${count(values.at(-1))}, at most ${count(most)}`;
  return html`<svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${told}>
    <title>${told}</title>
    <polyline points=${points.join(" ")} />
  </svg>`;
}

// Keys that do something in a view, while nothing is being typed.
export function useKeys(keys) {
  // Before the view is seen: whoever types fast means what is there.
  useLayoutEffect(() => {
    const press = (event) => {
      const isTyping = event.target.closest?.("input, textarea, select, dialog");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !keysAreOn()) return;
      const act = keys[event.key];
      if (act) {
        event.preventDefault();
        act();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

const KEYS_OFF = "redrive-keys-off";
export const keysAreOn = () => localStorage.getItem(KEYS_OFF) === null;
export const turnKeys = (isOn) => (isOn ? localStorage.removeItem(KEYS_OFF) : localStorage.setItem(KEYS_OFF, "1"));

// Moves among the rows of a list: each has a link that can have the focus.
export function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const now = rows.findIndex((one) => one.closest("tr")?.contains(document.activeElement));
  rows[Math.min(rows.length - 1, Math.max(0, now + by))]?.focus();
}

export const inRow = (selector) => document.activeElement?.closest("tr")?.querySelector(selector);

export function Copied({ text, children }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return html`<button type="button" class="small" onClick=${copy}>${isCopied ? "Copied" : children}</button>`;
}
