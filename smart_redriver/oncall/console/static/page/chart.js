// Courses over time, by uPlot. The figures are said in words, too: a canvas tells nothing to those who do not see it.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { html } from "./html.js";
import { count } from "./words.js";

const HEIGHT = 160;

// Whether it is dark, by the system or by choice: a canvas does not follow by itself.
function useDarkness() {
  const isDark = () => getComputedStyle(document.body).backgroundColor;
  const [ground, setGround] = useState(isDark());
  useEffect(() => {
    const look = () => setGround(isDark());
    const system = matchMedia("(prefers-color-scheme: dark)");
    const choice = new MutationObserver(look);
    system.addEventListener("change", look);
    choice.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    look();
    return () => {
      system.removeEventListener("change", look);
      choice.disconnect();
    };
  }, []);
  return ground;
}

// A colour as a canvas takes it: it can't resolve variables.
function colour(name, place) {
  place.style.color = `var(${name})`;
  const found = getComputedStyle(place).color;
  place.style.color = "";
  return found;
}

// `courses`: [{ name, points: [[seconds, value], ...], color }]; `since` and `until` in seconds.
export function Chart({ title, courses, since, until }) {
  const place = useRef(null);
  const drawn = useRef(null);
  const within = useRef([since, until]);
  within.current = [since, until];
  const ground = useDarkness();
  const data = together(courses);
  const shape = courses.map((one) => one.name + one.color).join() + ground;
  useEffect(() => {
    const grid = { stroke: colour("--line", place.current), width: 1 };
    const axis = { stroke: colour("--faint", place.current), grid, ticks: grid };
    const series = courses.map((one) => ({
      label: one.name,
      stroke: colour(one.color, place.current),
      width: 1.5,
      spanGaps: true,
    }));
    const scales = {
      x: { range: () => within.current },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
    };
    const width = place.current.clientWidth || 600;
    const options = { width, height: HEIGHT, series: [{}, ...series], axes: [axis, { ...axis, size: 60 }], scales };
    drawn.current = new uPlot(options, data, place.current);
    const fit = new ResizeObserver(() => {
      if (place.current?.clientWidth) drawn.current.setSize({ width: place.current.clientWidth, height: HEIGHT });
    });
    fit.observe(place.current);
    return () => {
      fit.disconnect();
      drawn.current.destroy();
    };
  }, [shape]);
  useEffect(() => drawn.current?.setData(data), [JSON.stringify(data), since, until]);
  const told = courses.map(({ name, points }) => `${name}: ${points.length ? count(points.at(-1)[1]) : "no figures"}`);
  return html`<figure>
    <figcaption>${title}: <span class="faint">${told.join(", ")}</span></figcaption>
    <div ref=${place} role="img" aria-label=${`${title}. Now: ${told.join(", ")}`}></div>
  </figure>`;
}

// Courses have figures at different moments; uPlot wants one row of moments.
function together(courses) {
  const moments = [...new Set(courses.flatMap((one) => one.points.map(([at]) => at)))].sort((a, b) => a - b);
  const columns = courses.map(({ points }) => {
    const known = new Map(points);
    return moments.map((at) => known.get(at) ?? null);
  });
  return [moments, ...columns];
}
