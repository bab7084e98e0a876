// Letters of one queue: searched, listed page by page, many chosen at once.
import { memo } from "./memo.js";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, useLook } from "./api.js";
import { html } from "./html.js";
import { inRow, Link, step, Trouble, useKeys, Waiting } from "./parts.js";
import { go } from "./route.js";
import { ago, count, letters, visible, waits } from "./words.js";

const PAGE = 200;
const FILTERS = ["contains", "where", "since", "until", "parked_as", "error", "cause"];
const FIELDS = { cause: "Cause", contains: "Body contains", id: "Id" };
const MORE_FIELDS = { error: "Error", parked_as: "Parked as", since: "Since", until: "Until", where: "Where (JMESPath)" };
const HINTS = { since: "2h, 3d, 2026-11-22T06:00", where: "customer.country == 'DE'", parked_as: "MAX_ATTEMPTS" };

function Search({ queue, query }) {
  const [typed, setTyped] = useState(query);
  const said = JSON.stringify(query);
  const shown = useRef(said);
  if (shown.current !== said) {
    shown.current = said;
    setTyped(query);
  }
  const search = (event) => {
    event.preventDefault();
    go(["q", queue, "letters"], typed);
  };
  const change = (name) => (event) => setTyped({ ...typed, [name]: event.target.value });
  const field = ([name, label]) =>
    html`<div key=${name} class="field">
      <label for=${`search-${name}`}>${label}</label>
      <input
        id=${`search-${name}`}
        value=${typed[name] ?? ""}
        placeholder=${HINTS[name]}
        onInput=${change(name)}
        autocomplete="off"
        spellcheck="false"
      />
    </div>`;
  return html`<details class="folded" open=${matchMedia("(min-width: 48rem)").matches}><summary>Search</summary><form class="search card padded" role="search" onSubmit=${search}>
    <div class="field">
      <label for="place">Where</label>
      <select id="place" value=${typed.place ?? ""} onChange=${change("place")}>
        <option value="">parking lot</option>
        <option value="dlq">DLQ</option>
      </select>
    </div>
    ${Object.entries(FIELDS).map(field)}
    <div class="buttons">
      <button type="submit" class="main">Search</button>
      <button type="button" onClick=${() => go(["q", queue, "letters"], { place: query.place })}>Clear</button>
    </div>
    <details class="more" open=${Object.keys(MORE_FIELDS).some((name) => typed[name])}>
      <summary>More filters</summary>
      <div class="search">${Object.entries(MORE_FIELDS).map(field)}</div>
    </details>
  </form></details>`;
}

const Row = memo(({ queue, one, at, isChosen, onChoose, isReadOnly }) => {
  const id = one.original_id;
  const moment = one.parked_at ?? one.first_seen;
  return html`<tr class=${isChosen ? "chosen" : ""}>
    ${!isReadOnly &&
    html`<td>
      <input type="checkbox" aria-label=${`Choose ${id}`} checked=${isChosen} onClick=${(event) => onChoose(id, event.shiftKey)} />
    </td>`}
    <th scope="row" class="code"><${Link} to=${["q", queue, "letter", id]} data-row title=${id} aria-label=${id}>${short(id)}<//></th>
    <td class="cause" title=${[one.cause, one.error].filter(Boolean).join("\n")}>
      ${visible(one.cause ?? "")} <span class="faint">${visible(said(one))}</span>
    </td>
    <td class="waits">${one.waits ? visible(waits(one.waits, at)) : one.reason}</td>
    <td class="number" data-label="Redrives">${one.redrive_count}</td>
    <td class="number" data-label="Strikes">${one.strikes}</td>
    <td><time datetime=${moment} title=${moment}>${ago(moment, at)}</time></td>
  </tr>`;
});

// What a consumer said beside the cause, where that does not hold it already.
function said({ cause, error }) {
  if (!cause || !error) return error ?? "";
  if (error.startsWith(`${cause}: `)) return error.slice(cause.length + 2);
  return cause.includes(": ") ? "" : error;
}

// The command takes the first part of an id, too.
const short = (id) => (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(id) ? id.slice(0, 8) : id);

// Pages that were asked for beside the first. They end when that is read anew.
function useFurther(path, query, first) {
  const [pages, setPages] = useState([]);
  const [fault, setFault] = useState(null);
  const [isAsking, setAsking] = useState(false);
  const said = JSON.stringify(query);
  const wanted = useRef(said);
  wanted.current = said;
  useEffect(() => setPages([]), [said, first?.read_at]);
  const last = pages.at(-1) ?? first;
  const more = async () => {
    setAsking(true);
    setFault(null);
    try {
      const page = await ask(path, { query: { ...query, limit: 1000 - PAGE, after: last.next } });
      if (wanted.current === said) setPages([...pages, page]);
    } catch (raised) {
      setFault(raised);
    }
    setAsking(false);
  };
  return { pages, next: last?.next, more, isAsking, fault };
}

function Actions({ queue, query, chosen, shown, total, onOrder, onClear }) {
  const filters = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
  const isFiltered = Object.keys(filters).length > 0;
  const isDlq = query.place === "dlq";
  const ids = [...chosen];
  const which = ids.length
    ? { ids }
    : { ...(isFiltered ? filters : { all: true }) };
  const isAny = ids.length > 0 || (total > 0 && !query.id);
  const where = isDlq ? { from_dlq: true } : {};
  const how = ids.length ? `${letters(ids.length)}, chosen one by one.` : isFiltered ? `All that match: ${describe(filters)}.` : "All of them.";
  const order = (verb, given) => onOrder({ queue, verb, given: { ...which, ...given }, about: how, onOrdered: onClear });
  const number = ids.length || total;
  const meant = query.id && total ? `${count(total)} found by id: choose from them` : `none chosen: all ${count(total)} that match`;
  return html`<div class="actions" role="group" aria-label="Do with letters">
    <span role="status">${ids.length ? `${count(ids.length)} chosen` : meant}</span>
    <button type="button" data-do="replay" disabled=${!isAny} onClick=${() => order("replay", where)}>Replay ${count(number)}…</button>
    ${isDlq && html`<button type="button" disabled=${!isAny} onClick=${() => order("park", {})}>Park ${count(number)}…</button>`}
    <button type="button" data-do="export" disabled=${!isAny} onClick=${() => order("export", where)}>Export…</button>
    <button type="button" data-do="delete" class="danger" disabled=${!isAny} onClick=${() => order("delete", where)}>
      Delete ${count(number)}…
    </button>
    ${ids.length > 0 && html`<button type="button" onClick=${onClear}>Choose none</button>`}
    <span class="faint">${count(shown)} shown</span>
  </div>`;
}

const describe = (filters) => Object.entries(filters).map(([name, value]) => `${name.replace("_", " ")} ${value}`).join(", ");

export function Letters({ queue, query, isReadOnly, onOrder }) {
  const path = `/queues/${encodeURIComponent(queue)}/letters`;
  const asked = Object.fromEntries(Object.entries(query).filter(([, value]) => value));
  const said = JSON.stringify(asked);
  const [long, setLong] = useState(null);
  // A search through bodies costs receives: it is asked once, and again by hand. A list that somebody reads on in
  // stands still, until something is changed.
  const isStill = query.contains || query.where || long === said;
  const look = useLook(path, { ...asked, limit: PAGE }, isStill ? 0 : 10);
  const further = useFurther(path, asked, look.value);
  const [chosen, setChosen] = useState(new Set());
  const lastChosen = useRef(null);
  useEffect(() => setChosen(new Set()), [said, queue]);
  const seen = new Set();
  const shown = [look.value, ...further.pages]
    .flatMap((page) => page?.letters ?? [])
    .filter((one) => !seen.has(one.original_id) && seen.add(one.original_id));
  const ids = useRef([]);
  ids.current = shown.map((one) => one.original_id);
  const choose = useRef((id, isRange) => {
    setChosen((before) => {
      const after = new Set(before);
      const [from, to] = [ids.current.indexOf(lastChosen.current), ids.current.indexOf(id)].sort((a, b) => a - b);
      const some = isRange && from >= 0 ? ids.current.slice(from, to + 1) : [id];
      const isOn = !before.has(id);
      for (const one of some) isOn ? after.add(one) : after.delete(one);
      lastChosen.current = id;
      return after;
    });
  }).current;
  const isAllChosen = shown.length > 0 && shown.every((one) => chosen.has(one.original_id));
  const chooseAll = () => setChosen(isAllChosen ? new Set() : new Set(ids.current));
  const press = (what) => () => document.querySelector(`[data-do=${what}]`)?.click();
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    x: () => inRow("input[type=checkbox]")?.click(),
    a: chooseAll,
    e: () => inRow("[data-row]") && go(["q", queue, "letter", inRow("[data-row]").title], { edit: 1 }),
    r: press("replay"),
    d: press("delete"),
    "/": () => document.getElementById("search-cause")?.focus(),
  });
  const { value } = look;
  return html`<section>
    <h1>Letters</h1>
    <${Search} queue=${queue} query=${query} />
    <${Trouble} look=${look} /><${Waiting} look=${look} what="the ledger" />
    ${value &&
    html`${value.warnings.map((one) => html`<p key=${one} class="warning">${one}</p>`)}
      <p>
        ${value.count ? `${letters(value.count)}${value.groups.length > 1 ? ":" : "."}` : "No letters match."}
        ${value.groups.length > 1 &&
        value.groups
          .slice(0, 12)
          .map(
            (one, place) =>
              html`<${Link}
                  key=${place}
                  class="facet badge plain"
                  to=${["q", queue, "letters"]}
                  query=${{ ...asked, parked_as: query.place === "dlq" ? "" : one.reason, cause: one.cause ?? "" }}
                  >${count(one.count)} ${query.place === "dlq" ? "" : one.reason} ${visible(one.cause ?? "")}<//
                >`,
          )}
      </p>
      ${!isReadOnly &&
      html`<${Actions}
        queue=${queue}
        query=${asked}
        chosen=${chosen}
        shown=${shown.length}
        total=${value.count}
        onOrder=${onOrder}
        onClear=${() => setChosen(new Set())}
      />`}
      ${shown.length > 0 &&
      html`<div class="wide card" tabindex="0" role="region" aria-label="Letters">
        <table class="letters">
          <thead>
            <tr>
              ${!isReadOnly &&
              html`<td><input type="checkbox" aria-label="Choose all that are shown" checked=${isAllChosen} onClick=${chooseAll} /></td>`}
              <th scope="col">Letter</th>
              <th scope="col">Why</th>
              <th scope="col">${query.place === "dlq" ? "Waits for" : "Parked as"}</th>
              <th scope="col" class="number">Redrives</th>
              <th scope="col" class="number">Strikes</th>
              <th scope="col">${query.place === "dlq" ? "First seen" : "Parked"}</th>
            </tr>
          </thead>
          <tbody>
            ${shown.map(
              (one) =>
                html`<${Row}
                  key=${one.original_id}
                  queue=${queue}
                  one=${one}
                  at=${value.read_at}
                  isChosen=${chosen.has(one.original_id)}
                  onChoose=${choose}
                  isReadOnly=${isReadOnly}
                />`,
            )}
          </tbody>
        </table>
      </div>`}
      ${further.fault && html`<p class="trouble" role="alert">${further.fault.message}</p>`}
      ${further.next && html`<button type="button" data-more disabled=${further.isAsking} onClick=${() => (setLong(said), further.more())}>Show more</button>`}`}
    ${query.place === "dlq" && html`<${Peek} queue=${queue} />`}
  </section>`;
}

// Letters that were never redriven, and of which nobody reported, are in no ledger.
function Peek({ queue }) {
  const [isOpen, setOpen] = useState(false);
  const look = useLook(isOpen ? `/queues/${encodeURIComponent(queue)}/peek` : null, { limit: 50 }, 0);
  return html`<section aria-labelledby="peek">
    <h2 id="peek">Not in the ledger</h2>
    <p>Letters on their first visit are known to the DLQ alone. To look at them they are received: their receive counts rise by one.</p>
    <button type="button" onClick=${() => (isOpen ? look.again() : setOpen(true))}>Peek at 50</button>
    ${isOpen && html`<${Trouble} look=${look} /><${Waiting} look=${look} what="the DLQ" />`}
    ${look.value &&
    html`<p role="status">${letters(look.value.depth)} in the DLQ. ${look.value.cost.join(" ")}</p>
      <ul class="plain">
        ${look.value.letters.map(
          (one) =>
            html`<li key=${one.message_id}>
              <${Link} to=${["q", queue, "letter", one.original_id]}>${one.original_id}<//> ${visible(one.cause)}
              <div class="code faint cut">${visible(one.body.slice(0, 200))}</div>
            </li>`,
        )}
      </ul>`}
  </section>`;
}
