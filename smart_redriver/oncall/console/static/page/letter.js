// One letter: where it is, how it failed, what it carries, and its mending by hand.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLook } from "./api.js";
import { html } from "./html.js";
import { ConsumerLog } from "./log.js";
import { Badge, Copied, Trouble, useKeys, Waiting } from "./parts.js";
import { go } from "./route.js";
import { count, pretty, visible, waits } from "./words.js";

function Journey({ ledger, why }) {
  const facts = {
    "Current id": ledger.current_id,
    "First seen": ledger.first_seen,
    Redrives: count(ledger.redrive_count),
    Strikes: count(ledger.strikes),
    "Held until": ledger.held_until,
    Parked: ledger.parked_at && `${ledger.reason}, ${ledger.parked_at}`,
    Why: ledger.parked_at && why && `it ${why}`,
    Cause: ledger.cause,
    Error: ledger.error,
  };
  return html`<dl class="facts">
      ${Object.entries(facts)
        .filter(([, fact]) => fact)
        .map(([name, fact]) => html`<div key=${name}><dt>${name}</dt><dd>${visible(String(fact))}</dd></div>`)}
    </dl>
    <h2>Journey</h2>
    <ol class="events">
      ${ledger.history.map((note, place) => {
        const [at, ...what] = note.split(" ");
        return html`<li key=${place}><time datetime=${at}>${at}</time> <span>${visible(what.join(" "))}</span></li>`;
      })}
    </ol>`;
}

const OF_LIBRARIES = /site-packages|dist-packages|\/opt\/python|\/var\/(runtime|lang)\/|\/lib\/python3|<frozen|node_modules|node:internal/;

// Its last line is what one looks for; frames of libraries are folded until asked for.
function Traceback({ text }) {
  const [isWhole, setWhole] = useState(false);
  const place = useRef(null);
  const { kept, left } = ownFrames(text);
  useLayoutEffect(() => {
    place.current.scrollTop = place.current.scrollHeight;
  }, [isWhole, text]);
  return html`<pre ref=${place} class="code" tabindex="0" role="region" aria-label="Traceback">${visible(isWhole ? text : kept)}</pre>
    ${left > 0 &&
    html`<button type="button" class="small" aria-pressed=${isWhole} onClick=${() => setWhole(!isWhole)}>
      With ${count(left)} ${left === 1 ? "frame" : "frames"} of libraries
    </button>`}`;
}

// A frame is a line that names a file, with the lines of code below it.
function ownFrames(text) {
  const kept = [];
  let left = 0;
  let isOfLibrary = false;
  for (const line of text.split("\n")) {
    const isFrame = /^\s+(File "|at )/.test(line);
    if (isFrame) isOfLibrary = OF_LIBRARIES.test(line);
    else if (!/^\s/.test(line)) isOfLibrary = false;
    if (!isOfLibrary) kept.push(line);
    else if (isFrame) left += 1;
  }
  return { kept: kept.join("\n"), left };
}

function Failure({ failure }) {
  const { consumer } = failure;
  const who = [consumer.name, consumer.version].filter(Boolean).join(" ");
  return html`<div>
    <h2>Last failure</h2>
    <p>
      <strong>${visible([failure.error_class, failure.first_line].filter(Boolean).join(": "))}</strong>
      ${failure.permanent && html` <${Badge} tone="bad">permanent<//>`}
    </p>
    <p class="faint">
      Reported ${failure.reported_at}${who && `, by ${visible(who)}`}${failure.receive_count ? `, at receive ${failure.receive_count}` : ""}
      ${consumer.request_id && `, request ${visible(consumer.request_id)}`}
    </p>
    ${failure.traceback && html`<${Traceback} text=${failure.traceback} />`}
    <p>
      ${failure.log_link && html`<a href=${failure.log_link} target="_blank" rel="noreferrer noopener">Open its log</a> `}
      ${failure.log_command && html`<${Copied} text=${failure.log_command}>Copy the command that opens its log<//>`}
    </p>
  </div>`;
}

function Attributes({ attributes }) {
  const all = Object.entries(attributes);
  if (!all.length) return html`<p>No attributes.</p>`;
  return html`<table>
    <thead><tr><th scope="col">Attribute</th><th scope="col">Type</th><th scope="col">Value</th></tr></thead>
    <tbody>
      ${all.map(
        ([name, one]) =>
          html`<tr key=${name}>
            <th scope="row">${visible(name)}</th>
            <td>${visible(one.DataType)}</td>
            <td class="code">${visible(one.StringValue ?? one.BinaryBase64 ?? "")}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function Body({ body }) {
  const asJson = pretty(body);
  const [isPretty, setPretty] = useState(true);
  return html`<div>
    <h2>Body</h2>
    ${asJson !== null &&
    html`<button type="button" class="small" aria-pressed=${isPretty} onClick=${() => setPretty(!isPretty)}>Indented</button>`}
    <pre class="code body" tabindex="0" role="region" aria-label="Body">${visible(isPretty && asJson !== null ? asJson : body)}</pre>
  </div>`;
}

// A textarea makes every line end a line feed: in it, a carriage return is a character that the body has nowhere.
function standInFor(body) {
  let code = 0x240d;
  while (body.includes(String.fromCodePoint(code))) code += 1;
  return String.fromCodePoint(code);
}

function Editor({ queue, id, message, isParked, onOrder, onClose }) {
  const [returns] = useState(() => (message.body.includes("\r") ? standInFor(message.body) : "\r"));
  const [body, setBody] = useState(message.body.replaceAll("\r", returns));
  const [attributes, setAttributes] = useState(JSON.stringify(message.attributes, null, 2));
  const [fault, setFault] = useState(null);
  const send = (event) => {
    event.preventDefault();
    let read;
    try {
      read = JSON.parse(attributes);
    } catch (raised) {
      setFault(`The attributes are no JSON: ${raised.message}`);
      return;
    }
    setFault(null);
    const given = { id, was: message.fingerprint, body: body.replaceAll(returns, "\r"), attributes: read, ...(isParked ? {} : { from_dlq: true }) };
    onOrder({ queue, verb: "edit", given, about: "The plan shows the difference." });
  };
  return html`<form onSubmit=${send}>
    <h2>Edit</h2>
    <p>The letter stays where it is meanwhile. Before its copy is sent, it is kept in a file, from which it can be put back.</p>
    ${fault && html`<p class="trouble" role="alert">${fault}</p>`}
    <div class="field">
      <label for="edit-body">Body</label>
      <textarea id="edit-body" class="code" rows="12" spellcheck="false" value=${body} onInput=${(event) => setBody(event.target.value)} />
      ${returns !== "\r" && html`<small>${returns} stands for a carriage return.</small>`}
    </div>
    <div class="field">
      <label for="edit-attributes">Attributes</label>
      <textarea
        id="edit-attributes"
        class="code"
        rows="6"
        spellcheck="false"
        value=${attributes}
        onInput=${(event) => setAttributes(event.target.value)}
      />
    </div>
    <div class="buttons">
      <button type="submit" class="main" data-send-edited>Send the edited copy…</button>
      <button type="button" onClick=${onClose}>Leave it as it is</button>
    </div>
  </form>`;
}

export function Letter({ queue, id, query, isReadOnly, onOrder }) {
  const [further, setFurther] = useState(100);
  // Looking costs a receive: it is asked once, and again after a change or by hand.
  const look = useLook(`/queues/${encodeURIComponent(queue)}/letters/${encodeURIComponent(id)}`, { look: further }, 0);
  const [isEditing, setEditing] = useState(query.edit === "1");
  const { value } = look;
  const isParked = value?.ledger?.status === "PARKED";
  const isThere = Boolean(value?.message);
  const given = { ids: [id], ...(isParked ? {} : { from_dlq: true }) };
  const order = (verb, more = given) => onOrder({ queue, verb, given: more });
  const can = !isReadOnly && isThere;
  useKeys({
    e: () => can && setEditing(true),
    Escape: () => (isEditing ? setEditing(false) : go(["q", queue, "letters"], isParked ? {} : { place: "dlq" })),
    r: () => can && order("replay"),
    d: () => can && order("delete"),
  });
  return html`<section>
    <h1 class="code">${id}</h1>
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the letter" />
    ${value &&
    html`<p>
        It is ${value.where}. ${value.waits && value.where !== "in the parking lot" && html`It waits for ${visible(waits(value.waits, value.at))}. `}
        ${value.message === null &&
        html` Its body is not available: it was not looked for there, or not found.
          <button type="button" onClick=${() => setFurther(further * 10)} disabled=${further >= 10000}>
            Look among ${count(Math.min(10000, further * 10))}
          </button>`}
      </p>
      ${value.warnings.map((one) => html`<p key=${one} class="warning">${one}</p>`)}
      ${can &&
      html`<div class="buttons" role="group" aria-label="Do with the letter">
        <button type="button" data-do="replay" onClick=${() => order("replay")}>Replay…</button>
        <button type="button" data-do="edit" aria-expanded=${isEditing} onClick=${() => setEditing(!isEditing)}>Edit</button>
        ${!isParked && html`<button type="button" onClick=${() => order("park", { ids: [id] })}>Park…</button>`}
        <button type="button" data-do="delete" class="danger" onClick=${() => order("delete")}>Delete…</button>
        <button type="button" onClick=${look.again}>Look again</button>
      </div>`}
      ${isEditing &&
      can &&
      html`<${Editor}
        key=${value.message.fingerprint}
        queue=${queue}
        id=${id}
        message=${value.message}
        isParked=${isParked}
        onOrder=${onOrder}
        onClose=${() => setEditing(false)}
      />`}
      <div class="split">
        ${value.message && html`<div><${Body} body=${value.message.body} /><h2>Attributes</h2><${Attributes} attributes=${value.message.attributes} /></div>`}
        <div>
          ${value.failure && html`<${Failure} failure=${value.failure} />`}
          ${value.ledger && html`<${ConsumerLog} key=${id} queue=${queue} id=${id} />`}
        </div>
        ${value.ledger && html`<div><h2>In the ledger</h2><${Journey} ledger=${value.ledger} why=${value.why} /></div>`}
      </div>`}
  </section>`;
}
