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
  const changes = [...(look.value?.changes ?? [])].reverse();
  return html`<section>
    <h1>History</h1>
    <label for="days">Last</label>${" "}
    <select id="days" value=${days} onChange=${(event) => setDays(Number(event.target.value))}>
      ${[1, 7, 30, 400].map((one) => html`<option key=${one} value=${one}>${one} d</option>`)}
    </select>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the audit trail" />
    ${look.value && changes.length === 0 && html`<p>Nobody changed anything by hand.</p>`}
    <ol class="events">
      ${changes.map(
        (one, place) =>
          html`<li key=${one.at + place}>
            <time datetime=${one.at}>${one.at}</time>
            <span><strong>${visible(one.who.split("/").at(-1).split(":").at(-1))}</strong> ${visible(one.what)}
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

export function Doctor({ queue }) {
  const look = useLook(`/queues/${encodeURIComponent(queue)}/doctor`, {}, 0);
  return html`<section>
    <h1>Doctor</h1>
    <p>Whether the deployment itself is well. <button type="button" onClick=${look.again}>Examine again</button></p>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the deployment" />
    <ul class="plain">
      ${look.value?.findings.map(
        (one, place) =>
          html`<li key=${place}>
            <${Badge} tone=${LEVELS[one.level][0]}>${LEVELS[one.level][1]}<//> ${visible(one.what)}
            ${one.remedy && html`<div class="faint">${visible(one.remedy)}</div>`}
          </li>`,
      )}
    </ul>
  </section>`;
}
