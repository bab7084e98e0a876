// The page: what is around each view, and which view an address means.
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { takeToken, useLook } from "./api.js";
import { Causes } from "./causes.js";
import { html } from "./html.js";
import { Letter } from "./letter.js";
import { Letters } from "./letters.js";
import { OrderDialog, Orders } from "./orders.js";
import { Badge, Headline, keysAreOn, Link, Trouble, turnKeys, useKeys } from "./parts.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";
import { Doctor, History } from "./records.js";
import { go, useRoute } from "./route.js";

const VIEWS = { causes: Causes, letters: Letters, history: History, doctor: Doctor };
const KEYS = [
  ["?", "these keys"],
  ["q", "all queues"],
  ["t / c / l / h", "a queue's timeline, causes, letters, history"],
  ["j, k, Enter", "next, previous, open"],
  ["x, a", "choose the letter; all that are shown"],
  ["/", "search letters"],
  ["r, e, d", "replay, edit, delete what is chosen or open; e: the row of the focus"],
  ["g", "what the open letter's consumer logged"],
  ["Escape", "leave a field, the editor, a letter; close a dialog, whose question is then answered with no"],
];

function Help({ onClose }) {
  const dialog = useRef(null);
  const [isOn, setOn] = useState(keysAreOn());
  useEffect(() => dialog.current.showModal(), []);
  const change = (event) => {
    turnKeys(event.target.checked);
    setOn(event.target.checked);
  };
  return html`<dialog ref=${dialog} aria-labelledby="help-title" onCancel=${onClose}>
    <h2 id="help-title">Keys</h2>
    <dl class="keys">
      ${KEYS.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}
    </dl>
    <div class="field flag">
      <label for="keys-on">Keys do this</label>
      <input id="keys-on" type="checkbox" checked=${isOn} onChange=${change} />
    </div>
    <div class="buttons"><button type="button" class="main" onClick=${onClose}>Close</button></div>
  </dialog>`;
}

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem("redrive-theme") ?? "");
  useEffect(() => {
    localStorage.setItem("redrive-theme", theme);
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return html`<label for="theme">Colours</label>
    <select id="theme" value=${theme} onChange=${(event) => setTheme(event.target.value)}>
      <option value="">as the system</option>
      <option value="light">light</option>
      <option value="dark">dark</option>
    </select>`;
}

function Tabs({ queue, spoken, view }) {
  const tabs = [
    [undefined, "Timeline"],
    ["causes", "Causes"],
    ["letters", "Letters"],
    ["history", "History"],
    ["doctor", "Doctor"],
  ];
  return html`<nav aria-label="Queue">
    <${Link} to=${[]}>All queues<//>
    <span class="faint queue" title=${queue}>${spoken}</span>
    ${tabs.map(
      ([name, label]) =>
        html`<${Link}
          key=${label}
          to=${["q", queue, ...(name ? [name] : [])]}
          aria-current=${view === name || (view === "letter" && name === "letters") ? "page" : undefined}
          >${label}<//
        >`,
    )}
  </nav>`;
}

// Timeline and causes have it from what they read themselves.
function HeadlineOf({ queue, view }) {
  const isShown = view && view !== "causes";
  const look = useLook(isShown ? `/queues/${encodeURIComponent(queue)}/headline` : null, {}, 15);
  return isShown && html`<${Headline} told=${look.value} queue=${queue} />`;
}

function View({ route, verbs, names, isReadOnly, onOrder }) {
  const [room, queue, view, id] = route.parts;
  const more = { verbs, names, isReadOnly, onOrder };
  if (room === "orders") return html`<${Orders} ...${more} />`;
  if (room !== "q") return html`<${Queues} ...${more} />`;
  const shown = { queue, query: route.query, ...more };
  if (view === "letter") return html`<${Letter} key=${id} id=${id} ...${shown} />`;
  const Part = VIEWS[view] ?? Queue;
  return html`<${Part} key=${queue + view} ...${shown} />`;
}

function Page() {
  const route = useRoute();
  const about = useLook("/about", {}, 0);
  const [wanted, setWanted] = useState(null);
  const [isHelping, setHelping] = useState(false);
  const back = useRef(null);
  const [room, queue, view] = route.parts;
  const open = (order) => {
    back.current = document.activeElement;
    setWanted({ ...order, key: Math.random() });
  };
  const close = () => {
    wanted?.onOrdered?.();
    setWanted(null);
    if (back.current?.isConnected) back.current.focus();
  };
  const to = (...parts) => () => room === "q" && go(["q", queue, ...parts]);
  useKeys({
    "?": () => setHelping(true),
    q: () => go([]),
    t: to(),
    c: to("causes"),
    h: to("history"),
    ...(room === "q" ? { l: to("letters") } : {}),
  });
  const { value } = about;
  const names = value?.names ?? {};
  const spoken = names[queue] ?? queue;
  useEffect(() => {
    const where = room === "q" ? `${view ?? "timeline"} of ${spoken}` : (room ?? "queues");
    document.title = `${where}: Redrive console`;
  }, [location.hash, spoken]);
  // A key has led here, and what had the focus is gone.
  useLayoutEffect(() => {
    if (document.activeElement === document.body) document.getElementById("main").focus();
  }, [room, queue, view]);
  const isReadOnly = value?.read_only ?? true;
  return html`<header>
      <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>To the content</a>
      <${Link} to=${[]} class="name">Redrive console<//>
      ${value &&
      html`<span>${[value.stack, value.region].filter(Boolean).join(", ")}</span>
        <span class="faint" title=${value.who}>${value.who.split(/[/:]/).at(-1)}</span>
        ${isReadOnly && html` <${Badge} tone="careful">read-only<//>`}`}
      <span class="right">
        <${Link} to=${["orders"]}>Orders<//>
        <button type="button" class="small" onClick=${() => setHelping(true)}>Keys (?)</button>
        <${Theme} />
      </span>
    </header>
    ${room === "q" && html`<${Tabs} queue=${queue} spoken=${spoken} view=${view} />`}
    <main id="main" tabindex="-1">
      ${about.fault && !value
        ? html`<h1>The console can't be shown</h1>
            <${Trouble} look=${about} />`
        : html`${room === "q" && value && html`<${HeadlineOf} key=${queue} queue=${queue} view=${view} />`}
          <${View} route=${route} verbs=${value?.verbs ?? []} names=${names} isReadOnly=${isReadOnly} onOrder=${open} />`}
    </main>
    ${wanted &&
    value &&
    html`<${OrderDialog} key=${wanted.key} wanted=${wanted} verbs=${value.verbs} names=${names} onClose=${close} onOrder=${open} />`}
    ${isHelping && html`<${Help} onClose=${() => setHelping(false)} />`}`;
}

takeToken();
render(html`<${Page} />`, document.getElementById("page"));
