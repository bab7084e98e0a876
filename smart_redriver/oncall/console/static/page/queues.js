// All queues at a glance.
import { useLook } from "./api.js";
import { html } from "./html.js";
import { Badge, Circuit, inRow, Link, Sparkline, step, Trouble, useKeys, Waiting } from "./parts.js";
import { ago, count } from "./words.js";

function Depths({ queue }) {
  const look = useLook(`/queues/${encodeURIComponent(queue)}/depths`, {}, 60);
  const values = look.value?.dead_letters.map(([, value]) => value);
  return html`<${Sparkline} values=${values} what="Letters in the DLQ, last three hours" />`;
}

function Row({ one }) {
  const { depths, circuit, next, alarms, alarm_details: details, at } = one;
  return html`<tr>
    <th scope="row">
      <${Link} to=${["q", one.queue]} data-row title=${one.queue}>${one.spoken}<//>
      ${alarms.length > 0 &&
      html` <${Badge} tone="bad">${alarms.length} ${alarms.length === 1 ? "alarm" : "alarms"}<//>
        <ul class="plain small">
          ${details.map((alarm) => html`<li key=${alarm.name}>${alarm.short}</li>`)}
        </ul>`}
      ${Object.entries(one.unknown).map(
        ([what, why]) => html`<div key=${what} class="bad small">Not read: ${what} (${why})</div>`,
      )}
    </th>
    <td>${circuit ? html`<${Circuit} state=${circuit.state} isPaused=${one.paused} />` : "not known"}</td>
    <td>${circuit && html`${circuit.reason}<br /><span class="faint">since ${ago(circuit.since, at)}</span>`}</td>
    <td>${next?.step} ${next?.at && html`<span class="faint">${ago(next.at, at)}</span>`}</td>
    <td class="number">${depths.dead_letters === null ? "?" : count(depths.dead_letters)}</td>
    <td><${Depths} queue=${one.queue} /></td>
    <td class="number">
      ${depths.parked === null
        ? "?"
        : html`<${Link} to=${["q", one.queue, "letters"]} aria-label=${`${depths.parked} parked letters of ${one.spoken}`}
            >${count(depths.parked)}<//
          >`}
    </td>
  </tr>`;
}

export function Queues() {
  const look = useLook("/status", {}, 10);
  useKeys({ j: () => step(1), k: () => step(-1), l: () => inRow("a[href$=letters]")?.click() });
  return html`<section>
    <h1>Queues</h1>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the queues" />
    ${look.value &&
    html`<div class="wide" tabindex="0" role="region" aria-label="Queues">
      <table>
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col">Circuit</th>
            <th scope="col">Why</th>
            <th scope="col">Next</th>
            <th scope="col" class="number">In the DLQ</th>
            <th scope="col">Last three hours</th>
            <th scope="col" class="number">Parked</th>
          </tr>
        </thead>
        <tbody>
          ${look.value.queues.map((one) => html`<${Row} key=${one.queue} one=${one} />`)}
        </tbody>
      </table>
    </div>`}
  </section>`;
}
