// Asks the console's API, with the token that came in the address.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

const KEPT = "redrive-token";
const CHANGED = new EventTarget();

// The fragment is in no request, log or referrer; this tab keeps it, so that it can be reloaded and bookmarked without.
export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(KEPT, found[1]);
    history.replaceState(null, "", "#/");
  }
}

export class Fault extends Error {
  constructor(message, kind) {
    super(message);
    this.kind = kind;
  }
}

export async function ask(path, { method = "GET", query = {}, body, signal } = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  let answer;
  try {
    answer = await fetch(`/api${path}${search}`, {
      method,
      signal,
      headers: {
        Authorization: `Bearer ${sessionStorage.getItem(KEPT) ?? ""}`,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Fault("The console does not answer: was it ended? Start `redrive console` again.", "gone");
  }
  const value = await answer.json();
  if (!answer.ok) throw new Fault(value.error, value.kind);
  return value;
}

export const order = (queue, verb, given) =>
  ask(`/queues/${encodeURIComponent(queue)}/${verb}`, { method: "POST", body: given });

export const tellChanged = () => CHANGED.dispatchEvent(new Event("changed"));

// What an address answers, asked again every few seconds while the page is seen. The last answer stays, with the
// fault beside it, when asking fails. Without a path nothing is asked.
export function useLook(path, query = {}, seconds = 10) {
  const [look, setLook] = useState({ value: null, fault: null, at: null, isAsking: true });
  const said = JSON.stringify(query);
  const latest = useRef(null);
  const again = useCallback(async () => {
    if (path === null) return;
    latest.current?.abort();
    const mine = (latest.current = new AbortController());
    setLook((one) => ({ ...one, isAsking: true }));
    try {
      const value = await ask(path, { query: JSON.parse(said), signal: mine.signal });
      setLook({ value, fault: null, at: new Date(), isAsking: false });
    } catch (fault) {
      if (fault.name !== "AbortError") setLook((one) => ({ ...one, fault, isAsking: false }));
    }
  }, [path, said]);
  useEffect(() => {
    setLook({ value: null, fault: null, at: null, isAsking: path !== null });
    again();
    return () => latest.current?.abort();
  }, [again]);
  useEffect(() => {
    const seen = () => document.visibilityState === "visible" && again();
    const timer = seconds ? setInterval(seen, seconds * 1000) : null;
    if (seconds) document.addEventListener("visibilitychange", seen);
    CHANGED.addEventListener("changed", again);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
      CHANGED.removeEventListener("changed", again);
    };
  }, [again, seconds]);
  return { ...look, again };
}
