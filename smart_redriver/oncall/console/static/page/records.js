// What people changed, what was kept of letters, and whether the deployment is well.
import { useState } from "preact/hooks";
import { useLook } from "./api.js";
import { html } from "./html.js";
import { Badge, Trouble, Waiting } from "./parts.js";
import { count, visible } from "./words.js";

const LEVELS = { good: ["good", "ok"], wrong: ["bad", "wrong"], unknown: ["careful", "not known"] };

export function History({ queue, isReadOnly, onOrder }) {
  const [days, setDays] = useState(30);
  const look = useLook(`/queues/${encodeURIComponent(queue)}/history`, { days }, 15);
  const files = useLook("/files", {}, 15);
  const changes = [...(look.value?.acts ?? [])].reverse();
  return html`<section>
    <h1>History</h1>
    <label for="days">Last</label>${" "}
    <select id="days" value=${days} onChange=${(event) => setDays(Number(event.target.value))}>
      ${[1, 7, 30, 400].map((one) => html`<option key=${one} value=${one}>${one} d</option>`)}
    </select>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the audit trail" />
    ${look.value && changes.length === 0 && html`<p>No change by hand.</p>`}
    <ol class="events">
      ${changes.map(
        (one, place) =>
          html`<li key=${one.at + place}>
            <time datetime=${one.at}>${one.at}</time>
            <span><strong>${visible(one.who)}</strong> ${visible(`${one.what}: ${one.outcome ?? "begun, no end recorded"}`)}
              ${one.why && html`<em> (${visible(one.why)})</em>`}</span>
          </li>`,
      )}
    </ol>
    <h2>Kept files</h2>
    <p>Letters as they were, in the folder in which the console was started.</p>
    <${Trouble} look=${files} />
    ${files.value?.length === 0 && html`<p>None.</p>`}
    <ul class="plain">
      ${files.value?.map(
        (one) =>
          html`<li key=${one.name}>
            <span class="code">${one.name}</span> <span class="faint">${count(one.bytes)} bytes</span>
            ${!isReadOnly &&
            html` <button
                type="button"
                class="small"
                aria-label=${`Undo ${one.name}`}
                onClick=${() => onOrder({ queue, verb: "undo", given: { file: one.name } })}
              >
                Undo…
              </button>
              <button
                type="button"
                class="small"
                aria-label=${`Import ${one.name}`}
                onClick=${() => onOrder({ queue, verb: "import", given: { file: one.name } })}
              >
                Import…
              </button>`}
          </li>`,
      )}
    </ul>
  </section>`;
}

function Findings({ findings }) {
  return html`<ul class="plain">
    ${findings.map(
      (one, place) =>
        html`<li key=${place}>
          <${Badge} tone=${LEVELS[one.level][0]}>${LEVELS[one.level][1]}<//> ${visible(one.what)}
          ${one.remedy && html`<div class="remedy">${visible(one.remedy)}</div>`}
        </li>`,
    )}
  </ul>`;
}

// What is wrong comes first.
export function Doctor({ queue }) {
  const look = useLook(`/queues/${encodeURIComponent(queue)}/doctor`, {}, 0);
  const of = (level) => (look.value?.findings ?? []).filter((one) => one.level === level);
  const [amiss, well] = [[...of("wrong"), ...of("unknown")], of("good")];
  return html`<section>
    <h1>Doctor</h1>
    <p>Whether the deployment itself is well. <button type="button" onClick=${look.again}>Examine again</button></p>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the deployment" />
    ${look.value &&
    html`<p>${amiss.length ? html`<strong>${count(amiss.length)} to look at.</strong>` : "Nothing to fix."}</p>
      <${Findings} findings=${amiss} />
      ${well.length > 0 &&
      html`<details>
        <summary>${count(well.length)} ${well.length === 1 ? "check is" : "checks are"} well</summary>
        <${Findings} findings=${well} />
      </details>`}`}
  </section>`;
}
