// What several views have.
import { useLayoutEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { address } from "./route.js";
import { count, visible } from "./words.js";

export function Trouble({ look }) {
  const { fault, at } = look;
  if (!fault) return null;
  return html`<p class="trouble" role="alert">
    ${fault.message} ${at && html`<span>What you see is of ${at.toISOString().slice(11, 19)} UTC.</span>`}
    <button type="button" onClick=${look.again}>Try again</button>
  </p>`;
}

export function Waiting({ look, what }) {
  if (look.value || look.fault) return null;
  return html`<p class="waiting" role="status">Reading ${what}…</p>`;
}

export const Link = ({ to, query, children, ...more }) =>
  html`<a href=${address(to, query)} ...${more}>${children}</a>`;

export const Badge = ({ tone, children }) => html`<span class=${`badge ${tone ?? "plain"}`}>${children}</span>`;

// The headline alone has a colour: a circuit may be CLOSED while letters wait for what does not come.
export const Circuit = ({ state, isPaused }) => html`<${Badge}>${isPaused ? `${state}, paused` : state}<//>`;

export const TONES = { green: "good", yellow: "careful", red: "bad" };

// Commands that are a page here.
const PAGES = { causes: ["causes"], doctor: ["doctor"], history: ["history"], parked: ["letters"], letters: ["letters", { place: "dlq" }] };

// A sentence in which commands stand in backticks: code, and a link where there is a page for it.
export function Spoken({ text, queue }) {
  return text.split("`").map((part, place) => {
    if (place % 2 === 0) return visible(part);
    const [view, query] = PAGES[/^redrive (\w+)/.exec(part)?.[1]] ?? [];
    const code = html`<code>${visible(part)}</code>`;
    return view && queue ? html`<${Link} to=${["q", queue, view]} query=${query}>${code}<//>` : code;
  });
}

export const Headline = ({ told, queue }) =>
  told &&
  html`<p class=${`headline ${TONES[told.colour] ?? ""}`}>
    ${visible(told.text)}${told.then && html`<br /><span class="plain-text"><${Spoken} text=${told.then} queue=${queue} /></span>`}
  </p>`;

// Figures side by side: [name, figure, remark, tone, where it leads].
export const Tiles = ({ label, tiles }) =>
  html`<dl class="tiles" aria-label=${label}>
    ${tiles.map(
      ([name, figure, remark, tone, link]) =>
        html`<div key=${name} class=${tone ?? ""}>
          <dt>${name}</dt>
          <dd>${link ? html`<a href=${link.to} aria-label=${link.label}>${figure}</a>` : figure}${remark && html`<small>${remark}</small>`}</dd>
        </div>`,
    )}
  </dl>`;

// A course of figures, small. What it shows is said, too, for those who do not see it.
export function Sparkline({ values, what }) {
  if (!values?.length) return html`<span class="faint">no figures yet</span>`;
  const most = Math.max(1, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map((value, place) => `${(place * step).toFixed(1)},${(23 - (22 * value) / most).toFixed(1)}`);
  const told = `${what}: now ${count(values.at(-1))}, at most ${count(most)}`;
  return html`<svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${told}>
    <title>${told}</title>
    <polygon points=${`0,24 ${points.join(" ")} 100,24`} />
    <polyline points=${points.join(" ")} />
  </svg>`;
}

// Keys that do something in a view, while nothing is being typed.
export function useKeys(keys) {
  // Before the view is seen: whoever types fast means what is there.
  useLayoutEffect(() => {
    const press = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !keysAreOn()) return;
      if (document.querySelector("dialog[open]")) return;
      const isTyping = event.target.closest?.("input, textarea, select");
      if (isTyping && event.key !== "Escape") return;
      const act = keys[event.key];
      if (act) {
        event.preventDefault();
        act();
      } else if (isTyping) {
        event.target.blur();
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
