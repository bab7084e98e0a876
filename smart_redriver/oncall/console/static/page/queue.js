// One queue: how it stands, what happened in the last hours, and what it can be told.
import { useState } from "preact/hooks";
import { useLook } from "./api.js";
import { Chart } from "./chart.js";
import { html } from "./html.js";
import { Badge, Circuit, Trouble, Waiting } from "./parts.js";
import { ago, visible } from "./words.js";

const KINDS = { circuit: "Circuit", verdict: "Verdict", change: "By hand", pass: "Pass", fault: "Fault" };
const STEERING = ["pause", "resume", "open", "close", "drain", "run"];

function Facts({ facts }) {
  const grouped = [];
  for (const one of facts) {
    if (one.name) grouped.push({ name: one.name, lines: [] });
    grouped.at(-1).lines.push(one);
  }
  return html`<dl class="facts">
    ${grouped.map(
      ({ name, lines }, place) =>
        html`<div key=${place}>
          <dt>${name}</dt>
          <dd>
            ${lines.map(({ text, tone }, line) => html`<div key=${line} class=${tone ?? ""}>${visible(text)}</div>`)}
          </dd>
        </div>`,
    )}
  </dl>`;
}

function Links({ links }) {
  const all = Object.entries(links);
  if (!all.length) return null;
  return html`<p>
    In the AWS console:${" "}
    ${all.map(([what, to]) => html`<a key=${what} href=${to} target="_blank" rel="noreferrer noopener">${what}</a> `)}
  </p>`;
}

function Charts({ value }) {
  const { courses, passes, origin } = value;
  const of = (name) => courses[name] ?? [];
  const within = { since: Date.parse(value.since) / 1000, until: Date.parse(value.at) / 1000 };
  const told = (name) => passes.filter((one) => one[name] !== null).map((one) => [one.at, one[name]]);
  return html`<${Chart}
      ...${within}
      title="Letters"
      courses=${[
        { name: "in the DLQ", points: of("dead_letters"), color: "--first" },
        { name: "parked", points: of("parked"), color: "--second" },
      ]}
    />
    ${origin === "sqs" &&
    html`<${Chart}
      ...${within}
      title="Deliveries of the source queue"
      courses=${[
        { name: "received", points: of("delivered"), color: "--first" },
        { name: "deleted", points: of("deleted"), color: "--second" },
      ]}
    />`}
    <${Chart}
      ...${within}
      title="Window"
      courses=${[
        { name: "letters that may await a verdict", points: told("window"), color: "--first" },
        { name: "that do", points: told("awaiting_verdict"), color: "--second" },
      ]}
    />`;
}

function Timeline({ queue }) {
  const [hours, setHours] = useState(3);
  const look = useLook(`/queues/${encodeURIComponent(queue)}/timeline`, { hours }, 15);
  const { value } = look;
  return html`<section aria-labelledby="timeline">
    <h2 id="timeline">Timeline</h2>
    <label for="hours">Last</label>${" "}
    <select id="hours" value=${hours} onChange=${(event) => setHours(Number(event.target.value))}>
      ${[1, 3, 6, 12, 24].map((one) => html`<option key=${one} value=${one}>${one} h</option>`)}
    </select>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the log of passes" />
    ${value &&
    html`${Object.entries(value.unknown).map(
        ([what, why]) => html`<p key=${what} class="trouble">Not read: ${what} (${why}).</p>`,
      )}
      <${Charts} value=${value} />
      ${value.events.length === 0 && html`<p>Nothing happened.</p>`}
      <div class="scroll" tabindex="0" role="region" aria-label="Events, the latest first"><ol class="events">
        ${value.events.map(
          (one, place) =>
            html`<li key=${one.at + place}>
              <time datetime=${one.at} title=${one.at}>${ago(one.at, value.at)}</time>
              <${Badge} tone=${one.tone}>${KINDS[one.kind]}<//> <span>${visible(one.text)}</span>
            </li>`,
        )}
      </ol></div>`}
  </section>`;
}

export function Queue({ queue, verbs, isReadOnly, onOrder }) {
  const look = useLook(`/queues/${encodeURIComponent(queue)}/status`, {}, 10);
  const { value } = look;
  const sources = value?.sources ?? [];
  return html`<section>
    <h1>
      ${value?.spoken ?? queue}${" "}
      ${sources.map(
        (one) => one.circuit && html`<${Circuit} key=${one.queue} state=${one.circuit.state} isPaused=${value.paused} />`,
      )}
    </h1>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the queue" />
    ${value &&
    html`<${Facts} facts=${value.facts} />
      ${Object.entries(value.unknown).map(
        ([what, why]) => html`<p key=${what} class="trouble">Not read: ${what} (${why}).</p>`,
      )}
      <${Links} links=${value.links} />`}
    ${!isReadOnly &&
    html`<div class="buttons" role="group" aria-label="Tell the re-driver">
      ${verbs
        .filter((one) => STEERING.includes(one.name))
        .flatMap((verb) =>
          sourcesMeant(verb.name, sources, queue).map(
            (name) =>
              html`<button
                key=${verb.name + name}
                type="button"
                title=${verb.about}
                onClick=${() => onOrder({ queue: name, verb: verb.name, given: {} })}
              >
                ${verb.name}${sources.length > 1 && name !== queue ? ` ${name}` : ""}…
              </button>`,
          ),
        )}
    </div>`}
    <${Timeline} queue=${queue} />
  </section>`;
}

// Where several queues share a DLQ, a circuit is forced by itself, and all else is for all of them.
function sourcesMeant(verb, sources, queue) {
  return ["open", "close"].includes(verb) && sources.length ? sources.map((one) => one.queue) : [queue];
}
