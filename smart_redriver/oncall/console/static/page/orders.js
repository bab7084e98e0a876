// Orders: a form, the command's plan, its question, progress, and the end. All of it in one dialog.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, order, tellChanged, useLook } from "./api.js";
import { html } from "./html.js";
import { Badge, Trouble, Waiting } from "./parts.js";
import { visible } from "./words.js";

const HOW_IT_ENDED = { 0: ["good", "Done"], 1: ["bad", "Not done"], 2: ["bad", "Refused"], 3: ["careful", "Partly done"] };
const UNDONE_BY_FILE = new Set(["edit", "delete"]);

// What is given already is not asked for once more.
function useForm(verb, given) {
  const [typed, setTyped] = useState({});
  const fields = verb.fields.filter((one) => !(one.name in given) && isAskable(one));
  const read = () => ({ ...given, ...Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== "")) });
  return { fields, typed, setTyped, read };
}

const CHOSEN_ELSEWHERE = ["all", "from_dlq", "contains", "where", "since", "until", "parked_as", "error", "cause", "file"];

function isAskable(field) {
  return !["array", "object"].includes(field.type) && !CHOSEN_ELSEWHERE.includes(field.name);
}

function Asked({ field, value, onChange }) {
  const id = `field-${field.name}`;
  const isFlag = field.type === "boolean";
  const isNumber = field.type === "number" || field.type === "integer";
  const change = (event) => {
    const { checked, value: text } = event.target;
    onChange(isFlag ? checked : isNumber && text !== "" ? Number(text) : text);
  };
  const name = field.name.replaceAll("_", " ");
  return html`<div class=${isFlag ? "field flag" : "field"}>
    <label for=${id}>${name}${field.is_needed ? " (needed)" : ""}</label>
    <input
      id=${id}
      type=${isFlag ? "checkbox" : isNumber ? "number" : "text"}
      step=${isNumber ? "any" : undefined}
      min=${field.minimum}
      required=${field.is_needed}
      checked=${isFlag ? Boolean(value) : undefined}
      value=${isFlag ? undefined : (value ?? "")}
      aria-describedby=${`${id}-about`}
      onInput=${change}
      autocomplete="off"
    />
    <small id=${`${id}-about`}>${field.description}</small>
  </div>`;
}

function Form({ verb, given, about, onOrdered, onClose }) {
  const form = useForm(verb, given);
  const [isSent, setSent] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    setSent(true);
    await onOrdered(form.read());
    setSent(false);
  };
  return html`<form onSubmit=${send}>
    <p>${verb.about}</p>
    ${about && html`<p class="about">${about}</p>`}
    ${form.fields.map(
      (field) =>
        html`<${Asked}
          key=${field.name}
          field=${field}
          value=${form.typed[field.name]}
          onChange=${(value) => form.setTyped({ ...form.typed, [field.name]: value })}
        />`,
    )}
    <div class="buttons">
      <button type="submit" class="main" disabled=${isSent}>Show the plan</button>
      <button type="button" onClick=${onClose}>Cancel</button>
    </div>
  </form>`;
}

function useTask(first) {
  const [task, setTask] = useState(first);
  const [fault, setFault] = useState(null);
  const { id, state } = task;
  useEffect(() => {
    let isWanted = true;
    const follow = async () => {
      let known = task;
      while (isWanted && known.state !== "ended") {
        try {
          known = await ask(`/tasks/${id}`, { query: { after: known.version } });
        } catch (raised) {
          if (isWanted) setFault(raised);
          return;
        }
        if (isWanted) setTask(known);
      }
    };
    follow();
    return () => {
      isWanted = false;
    };
  }, [id]);
  useEffect(() => {
    if (state === "ended") tellChanged();
  }, [state]);
  const post = async (what, body = {}) => {
    try {
      await ask(`/tasks/${id}/${what}`, { method: "POST", body });
    } catch (raised) {
      setFault(raised);
    }
  };
  return { task, fault, answer: (text) => post("answer", { question: task.question, answer: text }), stop: () => post("stop") };
}

function Question({ task, answer }) {
  const [typed, setTyped] = useState("");
  const [refused, setRefused] = useState(null);
  const isYes = task.expected === "yes";
  const yes = (event) => {
    event.preventDefault();
    if (isYes || typed.trim() === task.expected) answer(task.expected);
    else setRefused(typed.trim());
  };
  return html`<form class="question" onSubmit=${yes}>
    <p id="question"><strong>${visible(task.question)}</strong></p>
    ${!isYes &&
    html`<div class="field">
      <label for="answer">Type ${task.expected} to go on</label>
      <input id="answer" value=${typed} onInput=${(event) => setTyped(event.target.value)} autocomplete="off" />
    </div>`}
    ${refused && html`<p class="trouble" role="alert">${refused} is not ${task.expected}: nothing was changed.</p>`}
    <div class="buttons">
      <button type="submit" class="main" data-yes disabled=${!isYes && !typed.trim()}>Yes</button>
      ${task.other && html`<button type="button" onClick=${() => answer(task.other)}>Send one first</button>`}
      <button type="button" onClick=${() => answer("no")}>No</button>
    </div>
  </form>`;
}

function Progress({ task, stop }) {
  const { progress } = task;
  return html`<div class="progress">
    ${progress
      ? html`<label for="progress">${progress.what}: ${progress.done} of ${progress.total ?? "some"}</label>
          <progress id="progress" max=${progress.total || undefined} value=${progress.total ? progress.done : undefined} />`
      : html`<p role="status">${task.state === "planning" ? "Making the plan…" : "At work…"}</p>`}
    <button type="button" onClick=${stop}>Stop</button>
  </div>`;
}

function End({ task, onClose, onOrder }) {
  const [tone, words] = HOW_IT_ENDED[task.exit_code] ?? ["bad", "Ended"];
  const canUndo = UNDONE_BY_FILE.has(task.verb) && task.file && task.result?.done > 0;
  return html`<div class="end" role="status">
    <p><${Badge} tone=${tone}>${words}<//> ${task.fault && visible(task.fault)}</p>
    <div class="buttons">
      ${canUndo &&
      html`<button type="button" onClick=${() => onOrder({ queue: task.queue, verb: "undo", given: { file: task.file } })}>
        Undo…
      </button>`}
      <button type="button" class="main" onClick=${onClose}>Close</button>
    </div>
  </div>`;
}

function Lines({ lines }) {
  if (!lines.length) return null;
  return html`<div class="lines" tabindex="0" role="region" aria-label="What the command says">
    ${lines.map(({ kind, text }, place) => html`<div key=${place} class=${`${kind}${toneOf(text)}`}>${visible(text)}</div>`)}
  </div>`;
}

// A plan has the difference that an edit makes in it.
function toneOf(text) {
  if (/^ *\+(?!\+\+)/.test(text)) return " added";
  if (/^ *-(?!--)/.test(text)) return " removed";
  return "";
}

function Running({ first, onClose, onOrder, isDialogAsked }) {
  const { task, fault, answer, stop } = useTask(first);
  const top = useRef(null);
  isDialogAsked.current = () => {
    if (task.state === "asking") stop();
  };
  useLayoutEffect(() => {
    // Whoever reads the plan comes to it first; Yes is one Tab away, and never under a finger that hits Enter twice.
    // Before the question is drawn: focus that moves later takes Yes away from whoever is quick.
    if (task.state === "asking") top.current?.focus();
  }, [task.state, task.question]);
  return html`<div>
    <div ref=${top} tabindex="-1"><${Lines} lines=${task.lines} /></div>
    ${fault && html`<p class="trouble" role="alert">${fault.message}</p>`}
    ${task.state === "asking" && html`<${Question} key=${task.question} task=${task} answer=${answer} />`}
    ${["planning", "working"].includes(task.state) && html`<${Progress} task=${task} stop=${stop} />`}
    ${task.state === "ended" && html`<${End} task=${task} onClose=${onClose} onOrder=${onOrder} />`}
  </div>`;
}

// `wanted`: { queue, verb, given, about } for a new order, or { task } for one that is under way.
export function OrderDialog({ wanted, verbs, names, onClose, onOrder }) {
  const dialog = useRef(null);
  const onEscape = useRef(() => {});
  const [task, setTask] = useState(wanted.task ?? null);
  const [fault, setFault] = useState(null);
  const name = task?.verb ?? wanted.verb;
  const queue = task?.queue ?? wanted.queue;
  const verb = verbs.find((one) => one.name === name);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  const begin = async (given) => {
    setFault(null);
    try {
      setTask(await order(wanted.queue, wanted.verb, given));
    } catch (raised) {
      setFault(raised);
    }
  };
  useEffect(() => {
    if (wanted.isReady) begin(wanted.given);
  }, []);
  const close = () => {
    onEscape.current();
    onClose();
  };
  return html`<dialog ref=${dialog} aria-labelledby="order-title" onCancel=${close}>
    <h2 id="order-title">${name} <span class="faint" title=${queue}>${names[queue] ?? queue}</span></h2>
    ${fault && html`<p class="trouble" role="alert">${fault.message}</p>`}
    ${task
      ? html`<${Running} key=${task.id} first=${task} onClose=${close} onOrder=${onOrder} isDialogAsked=${onEscape} />`
      : wanted.isReady && !fault
        ? html`<p role="status">Making the plan…</p>`
        : html`<${Form}
            verb=${verb}
            given=${wanted.given}
            about=${wanted.about}
            onOrdered=${begin}
            onClose=${close}
          />`}
  </dialog>`;
}

export function Orders({ names, onOrder }) {
  const look = useLook("/tasks", {}, 3);
  return html`<section>
    <h1>Orders</h1>
    <p>What was ordered from this console since it was started. The history of a queue has all there ever was.</p>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="orders" />
    ${look.value?.length === 0 && html`<p>None yet.</p>`}
    <ul class="plain">
      ${look.value?.map((task) => {
        const [tone, words] = task.state === "ended" ? HOW_IT_ENDED[task.exit_code] : ["careful", task.state];
        return html`<li key=${task.id}>
          <button type="button" onClick=${() => onOrder({ task })}>${task.verb} ${names[task.queue] ?? task.queue}, ${task.began_at}</button>
          <${Badge} tone=${tone}>${words}<//>
        </li>`;
      })}
    </ul>
  </section>`;
}
