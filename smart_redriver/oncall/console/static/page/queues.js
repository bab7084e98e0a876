// All queues at a glance, and the causes that keep most letters.
import { useLook } from "./api.js";
import { TopCauses } from "./causes.js";
import { html } from "./html.js";
import { Badge, Circuit, Headline, inRow, Link, Sparkline, step, Tiles, Trouble, useKeys, Waiting } from "./parts.js";
import { ago, count, pace } from "./words.js";

// Causes are read from the ledger, whole: of the queues that want a person most.
const MOST_LEDGERS = 5;

function Depths({ queue }) {
  const look = useLook(`/queues/${encodeURIComponent(queue)}/depths`, {}, 60);
  const values = look.value?.dead_letters.map(([, value]) => value);
  return html`<${Sparkline} values=${values} what="Letters in the DLQ, last three hours" />`;
}

function Row({ one }) {
  const { depths, circuit, alarms, alarm_details: details } = one;
  return html`<tr>
    <th scope="row">
      <${Link} to=${["q", one.queue]} data-row title=${one.queue}>${one.spoken}<//>
      ${" "}${circuit ? html`<${Circuit} state=${circuit.state} isPaused=${one.paused} />` : "circuit not known"}
      ${alarms.length > 0 &&
      html`<ul class="plain small">
        ${details.map((alarm) => html`<li key=${alarm.name}><${Badge} tone="bad">${alarm.short}<//></li>`)}
      </ul>`}
      ${Object.entries(one.unknown).map(
        ([what, why]) => html`<div key=${what} class="bad small">Not read: ${what} (${why})</div>`,
      )}
    </th>
    <td><${Headline} told=${one.headline} queue=${one.queue} /></td>
    <td class="number" data-label="In the DLQ">${depths.dead_letters === null ? "?" : count(depths.dead_letters)}</td>
    <td><${Depths} queue=${one.queue} /></td>
    <td data-label="Going back">${going(one)}</td>
    <td class="number" data-label="Parked">
      ${depths.parked === null
        ? "?"
        : html`<${Link} to=${["q", one.queue, "letters"]} aria-label=${`${count(depths.parked)} parked ${depths.parked === 1 ? "letter" : "letters"} of ${one.spoken}`}
            >${count(depths.parked)}<//
          >`}
    </td>
  </tr>`;
}

// How letters go back, and when the DLQ is empty at that rate.
function going({ sources, at }) {
  const known = sources.map((one) => one.pace).filter((one) => one?.letters_per_second);
  if (!known.length) return html`<span class="faint">none</span>`;
  const last = known.map((one) => one.drained_by).filter(Boolean).sort().at(-1);
  return html`${pace(known.reduce((all, one) => all + one.letters_per_second, 0))}
    ${last && html`<div class="faint small">drained <time datetime=${last} title=${last}>${ago(last, at)}</time></div>`}`;
}

const URGENCY = ["red", "yellow", "none", "green"];
const urgency = ({ headline }) => URGENCY.indexOf(headline?.colour ?? "yellow");

function Totals({ queues }) {
  const sum = (name) => queues.reduce((all, { depths }) => all + (depths[name] ?? 0), 0);
  const of = (...colours) => queues.filter(({ headline }) => colours.includes(headline?.colour)).length;
  const stuck = of("red", "yellow");
  const alarms = queues.reduce((all, one) => all + one.alarms.length, 0);
  return html`<${Tiles}
    label="All queues"
    tiles=${[
      [queues.length === 1 ? "queue" : "queues", count(queues.length)],
      ["with letters that wait for something", count(stuck), null, of("red") ? "bad" : stuck ? "careful" : "good"],
      ["letters in DLQs", count(sum("dead_letters"))],
      ["parked", count(sum("parked"))],
      ["alarms", count(alarms), null, alarms ? "bad" : null],
    ]}
  />`;
}

export function Queues({ isReadOnly, onOrder }) {
  const look = useLook("/status", {}, 10);
  useKeys({ j: () => step(1), k: () => step(-1), l: () => inRow("a[href$=letters]")?.click() });
  const queues = [...(look.value?.queues ?? [])].sort((a, b) => urgency(a) - urgency(b));
  const stuck = queues.filter(({ depths }) => depths.dead_letters || depths.parked).slice(0, MOST_LEDGERS);
  return html`<section>
    <h1>Queues</h1>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the queues" />
    ${look.value &&
    html`<${Totals} queues=${queues} />
      <div class="wide card" tabindex="0" role="region" aria-label="Queues">
        <table class="queues">
          <thead>
            <tr>
              <th scope="col">Queue</th>
              <th scope="col">Now</th>
              <th scope="col" class="number">In the DLQ</th>
              <th scope="col">Last three hours</th>
              <th scope="col">Going back</th>
              <th scope="col" class="number">Parked</th>
            </tr>
          </thead>
          <tbody>
            ${queues.map((one) => html`<${Row} key=${one.queue} one=${one} />`)}
          </tbody>
        </table>
      </div>
      ${stuck.map(
        (one) =>
          html`<${TopCauses}
            key=${one.queue}
            queue=${one.queue}
            title=${queues.length > 1 ? `Top causes of ${one.spoken}` : "Top causes"}
            isReadOnly=${isReadOnly}
            onOrder=${onOrder}
          />`,
      )}`}
  </section>`;
}
