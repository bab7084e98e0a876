// Where the page is: its fragment, as a path and what stands behind the question mark.
import { useEffect, useState } from "preact/hooks";

// A fragment is typed, cut off in a chat, or mended by hand: a part that is no percent encoding stays as it is.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function read(hash = location.hash) {
  const [path, search = ""] = hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, query: Object.fromEntries(new URLSearchParams(search)) };
}

export function address(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export const go = (parts, query) => {
  location.hash = address(parts, query);
};

export function useRoute() {
  const [route, setRoute] = useState(read());
  useEffect(() => {
    const follow = () => setRoute(read());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}
