// One queue: how it stands, what happened in the last hours, and what it can be told.
import { useState } from "preact/hooks";
import { useLook } from "./api.js";
import { TopCauses } from "./causes.js";
import { Chart } from "./chart.js";
import { html } from "./html.js";
import { Badge, Circuit, Headline, Spoken, Tiles, Trouble, Waiting } from "./parts.js";
import { address } from "./route.js";
import { ago, clock, count, pace } from "./words.js";

const KINDS = { circuit: "Circuit", verdict: "Verdict", change: "By hand", pass: "Pass", fault: "Fault", seen: "Seen" };
const STEERING = ["pause", "resume", "open", "close", "drain", "run"];

// Behind the share that succeeded: what the circuit made of it.
const GROUNDS = { CLOSED: "--good-ground", HALF_OPEN: "--careful-ground", OPEN: "--bad-ground" };

function Facts({ facts, queue }) {
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
            ${lines.map(({ text, tone }, line) => html`<div key=${line} class=${tone ?? ""}><${Spoken} text=${text} queue=${queue} /></div>`)}
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
  const minutely = (name) => {
    const sums = new Map();
    for (const one of passes) sums.set(one.at - (one.at % 60), (sums.get(one.at - (one.at % 60)) ?? 0) + one[name]);
    return [...sums];
  };
  const given = passes.map(({ at, letters_per_second: rate }) => [at, rate === null ? null : 60 * rate]);
  const isPaced = given.some(([, rate]) => rate !== null);
  const shares = Object.entries(value.shares);
  return html`<${Chart}
      ...${within}
      isWide
      title="Share that succeeded, and the circuit"
      most=${1}
      said=${(share) => `${Math.round(100 * share)} %`}
      courses=${shares.map(([name, points], place) => ({ name: `of ${name}`, points, color: ["--first", "--second"][place] }))}
      bands=${value.states.map(({ state, since, until }) => ({ name: state, since, until, color: GROUNDS[state] }))}
    />
    <${Chart}
      ...${within}
      title="Letters"
      courses=${[
        { name: "visible in the DLQ", points: of("dead_letters"), color: "--first" },
        { name: "parked", points: of("parked"), color: "--second" },
      ]}
    />
    <${Chart}
      ...${within}
      title="Letters a minute"
      courses=${[
        { name: "redriven", points: minutely("redriven"), color: "--first" },
        { name: "returned", points: minutely("returned"), color: "--second" },
        ...(isPaced ? [{ name: "that the consumer bears", points: given, color: "--third" }] : []),
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
    <div class="heading">
      <h2 id="timeline">Timeline</h2>
      <label for="hours">Last</label>
      <select id="hours" value=${hours} onChange=${(event) => setHours(Number(event.target.value))}>
        ${[1, 3, 6, 12, 24].map((one) => html`<option key=${one} value=${one}>${one} h</option>`)}
      </select>
      <span class="faint">Times in UTC</span>
    </div>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the log of passes" />
    ${value &&
    html`${Object.entries(value.unknown).map(
        ([what, why]) => html`<p key=${what} class="trouble">Not read: ${what} (${why}).</p>`,
      )}
      <div class="charts"><${Charts} value=${value} /></div>
      ${value.events.length === 0 && html`<p>Nothing happened.</p>`}
      <div class="scroll" tabindex="0" role="region" aria-label="Events, the latest first"><ol class="events">
        ${value.events.map(
          (one, place) =>
            html`<li key=${one.at + place}>
              <time datetime=${one.at} title=${one.at}>${clock(one.at)} <span class="small">${ago(one.at, value.at)}</span></time>
              <${Badge} tone=${one.tone}>${KINDS[one.kind]}<//> <span><${Spoken} text=${one.text} queue=${queue} /></span>
            </li>`,
        )}
      </ol></div>`}
  </section>`;
}

function Figures({ value, queue }) {
  const { depths, sources, alarms, at } = value;
  const paces = sources.map((one) => one.pace).filter(Boolean);
  const sum = (name) => paces.reduce((all, one) => all + (one[name] ?? 0), 0);
  const rate = sum("letters_per_second");
  const drained = paces.map((one) => one.drained_by).filter(Boolean).sort().at(-1);
  const known = (depth) => (depth === null ? "?" : count(depth));
  return html`<${Tiles}
    label="Figures"
    tiles=${[
      ["in the DLQ", known(depths.dead_letters), null, depths.dead_letters ? null : "good", { to: address(["q", queue, "letters"], { place: "dlq" }), label: `${known(depths.dead_letters)} letters in the DLQ` }],
      ["out, outcome not known", count(sum("out"))],
      ["going back", rate ? pace(rate) : "none", drained && `drained ${ago(drained, at)}`],
      ["parked", known(depths.parked), null, null, { to: address(["q", queue, "letters"]), label: `${known(depths.parked)} parked letters` }],
      ["alarms", count(alarms.length), null, alarms.length ? "bad" : null],
    ]}
  />`;
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
    ${value && html`<${Headline} told=${value.headline} queue=${queue} /><${Figures} value=${value} queue=${queue} />`}
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
    <${TopCauses} queue=${queue} title="Top causes" isReadOnly=${isReadOnly} onOrder=${onOrder} />
    <${Timeline} queue=${queue} />
    ${value &&
    html`<section aria-labelledby="details">
      <h2 id="details">Details</h2>
      <div class="card padded">
        <${Facts} facts=${value.facts.filter(({ name }) => !["Now", "Do"].includes(name))} queue=${queue} />
        ${Object.entries(value.unknown).map(
          ([what, why]) => html`<p key=${what} class="trouble">Not read: ${what} (${why}).</p>`,
        )}
        <${Links} links=${value.links} />
      </div>
    </section>`}
  </section>`;
}

// Where several queues share a DLQ, a circuit is forced by itself, and all else is for all of them.
function sourcesMeant(verb, sources, queue) {
  return ["open", "close"].includes(verb) && sources.length ? sources.map((one) => one.queue) : [queue];
}
