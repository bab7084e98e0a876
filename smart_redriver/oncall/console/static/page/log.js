// What a letter's consumer logged about it: asked for by hand, since CloudWatch bills each search.
import { useState } from "preact/hooks";
import { useLook } from "./api.js";
import { html } from "./html.js";
import { Copied, Trouble, useKeys, Waiting } from "./parts.js";
import { visible } from "./words.js";

function Lines({ log }) {
  if (log.refused) return html`<p class="warning">Its log could not be read (${visible(log.refused)}). The same by hand: copy the query.</p>`;
  if (!log.lines.length) return html`<p>Its consumer logged nothing with one of its ids.</p>`;
  return html`${log.left_off && html`<p class="faint">The end of it; the query has all.</p>`}
    <pre class="code" tabindex="0" role="region" aria-label="Log lines">${log.lines.map((one) => `${one.at}  ${visible(one.text)}\n`)}</pre>`;
}

function Elsewhere({ onSearch }) {
  const [name, setName] = useState("");
  const search = (event) => {
    event.preventDefault();
    if (name.trim()) onSearch(name.trim());
  };
  return html`<form onSubmit=${search}>
    <p>No report says where its consumer logs.</p>
    <div class="field">
      <label for="log-group">Log group to search</label>
      <input id="log-group" class="code" value=${name} onInput=${(event) => setName(event.target.value)} />
    </div>
    <div class="buttons"><button type="submit">Search it</button></div>
  </form>`;
}

export function ConsumerLog({ queue, id }) {
  const [group, setGroup] = useState(null);
  const [isAsked, setAsked] = useState(false);
  const path = `/queues/${encodeURIComponent(queue)}/letters/${encodeURIComponent(id)}/log`;
  const look = useLook(isAsked ? path : null, group ? { log_group: group } : {}, 0);
  useKeys({ g: () => setAsked(true) });
  const { value } = look;
  return html`<div>
    <h2>Its consumer's log</h2>
    ${!isAsked && html`<p><button type="button" onClick=${() => setAsked(true)}>Show what its consumer logged</button></p>`}
    ${isAsked && html`<${Trouble} look=${look} /><${Waiting} look=${look} what="the log" />`}
    ${value?.log && html`<${Lines} log=${value.log} /><p><${Copied} text=${value.log.command}>Copy the query<//></p>`}
    ${value && !value.log && html`<${Elsewhere} onSearch=${setGroup} />`}
  </div>`;
}
