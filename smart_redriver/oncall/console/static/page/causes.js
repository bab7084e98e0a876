// Why letters are stuck.
import { useLook } from "./api.js";
import { html } from "./html.js";
import { Badge, Headline, inRow, Link, Sparkline, step, Trouble, useKeys, Waiting } from "./parts.js";
import { ago, clock, count, letters, visible } from "./words.js";

const STATES = { held: "careful", waiting: "careful", flowing: "good", parked: "plain" };

function Row({ queue, group, at, isReadOnly, onOrder }) {
  const cause = group.cause ?? undefined;
  const name = group.cause ?? (group.not_in_ledger === group.letters ? "which no pass has looked at yet" : "no cause reported");
  const order = (verb, given, number) =>
    onOrder({ queue, verb, given: { cause, ...given }, about: `${letters(number)} of cause ${name}, as of a moment ago.` });
  return html`<tr>
    <th scope="row">
      ${cause
        ? html`<${Link} to=${["q", queue, "letters"]} query=${{ cause, place: group.parked ? "" : "dlq" }} data-row
            >${visible(name)}<//
          >`
        : html`<${Link} to=${["q", queue, "letters"]} data-row>${name}<//>`}
      ${group.example?.first_line && html`<div class="faint small">${visible(group.example.first_line)}</div>`}
    </th>
    <td class="number" data-label="Letters">${count(group.letters)}</td>
    <td><${Sparkline} values=${group.trend} what="Came in the last six hours, by quarters of an hour" /></td>
    <td class="number" data-label="In the DLQ">${count(group.in_dlq)}</td>
    <td class="number" data-label="Parked">${count(group.parked)}</td>
    <td><${Badge} tone=${STATES[group.state]}>${group.state}<//></td>
    <td data-label="First seen">${group.since && html`<time datetime=${group.since} title=${group.since}>${ago(group.since, at)}</time>`}</td>
    <td>
      ${group.example &&
      html`<${Link} to=${["q", queue, "letter", group.example.original_id]} aria-label=${`open one of ${name}`}>open one<//>`}
    </td>
    ${!isReadOnly &&
    html`<td class="buttons">
      ${cause &&
      group.parked > 0 &&
      html`<button type="button" data-replay onClick=${() => order("replay", {}, group.parked)}>Replay parked…</button>`}
      ${cause &&
      group.in_dlq > 0 &&
      html`<button type="button" onClick=${() => order("park", {}, group.in_dlq)}>Park those in the DLQ…</button>`}
    </td>`}
  </tr>`;
}

const MOST = 3;

function Table({ queue, groups, at, label, isReadOnly, onOrder }) {
  return html`<div class="wide card" tabindex="0" role="region" aria-label=${label}>
    <table class="causes">
      <thead>
        <tr>
          <th scope="col">Cause</th>
          <th scope="col" class="number">Letters</th>
          <th scope="col">Last six hours</th>
          <th scope="col" class="number">In the DLQ</th>
          <th scope="col" class="number">Parked</th>
          <th scope="col">State</th>
          <th scope="col">First seen</th>
          <th scope="col">Example</th>
          ${!isReadOnly && html`<th scope="col">Do</th>`}
        </tr>
      </thead>
      <tbody>
        ${groups.map(
          (group) =>
            html`<${Row}
              key=${`${group.queue}/${group.cause}`}
              queue=${queue}
              group=${group}
              at=${at}
              isReadOnly=${isReadOnly}
              onOrder=${onOrder}
            />`,
        )}
      </tbody>
    </table>
  </div>`;
}

// The causes that keep most letters of a queue, on pages about more than that.
export function TopCauses({ queue, title, isReadOnly, onOrder }) {
  const { value } = useLook(`/queues/${encodeURIComponent(queue)}/causes`, {}, 30);
  if (!value?.groups.length) return null;
  const more = value.groups.length - MOST;
  return html`<section>
    <h2>${title}</h2>
    <${Table} queue=${queue} groups=${value.groups.slice(0, MOST)} at=${value.at} label=${title} isReadOnly=${isReadOnly} onOrder=${onOrder} />
    ${more > 0 && html`<p><${Link} to=${["q", queue, "causes"]}>${count(more)} more<//></p>`}
  </section>`;
}

export function Causes({ queue, isReadOnly, onOrder }) {
  const look = useLook(`/queues/${encodeURIComponent(queue)}/causes`, {}, 15);
  const { value } = look;
  useKeys({ j: () => step(1), k: () => step(-1), r: () => inRow("[data-replay]")?.click() });
  return html`<section>
    <h1>Causes</h1>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the ledger" />
    ${value &&
    html`<${Headline} told=${value.headline} queue=${queue} />
      <p>
        ${value.letters ? `${letters(value.letters)} ${value.letters === 1 ? "is" : "are"} stuck.` : "No letter is stuck: the DLQ and the parking lot are empty."}
        ${" "}<span class="faint">As the ledger had it at ${clock(value.read_at)} UTC; nothing was received.</span>
      </p>
      ${value.groups.length > 0 &&
      html`<${Table} queue=${queue} groups=${value.groups} at=${value.at} label="Causes" isReadOnly=${isReadOnly} onOrder=${onOrder} />`}`}
  </section>`;
}
