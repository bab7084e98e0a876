// Courses over time, by uPlot. The figures are said in words, too, those of now or where the pointer is.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { html } from "./html.js";
import { count } from "./words.js";

const HEIGHT = 165;

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

// `courses`: [{ name, points: [[seconds, value], ...], color }]; `since` and `until` in seconds. `said` puts a value into
// words, `most` is the end of the scale. `bands`: [{ name, since, until, color }], spans of time behind the courses.
export function Chart({ title, courses, since, until, bands = [], said = count, most = null, isWide = false }) {
  const place = useRef(null);
  const drawn = useRef(null);
  const [pointed, setPointed] = useState(null);
  const within = useRef([since, until]);
  within.current = [since, until];
  const spans = useRef(bands);
  spans.current = bands;
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
    }));
    const scales = {
      x: { range: () => within.current },
      y: { range: (_, __, highest) => [0, most ?? Math.max(1, highest * 1.1)] },
    };
    const width = place.current.clientWidth || 600;
    const tzDate = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
    const options = {
      tzDate,
      width,
      height: HEIGHT,
      series: [{}, ...series],
      axes: [{ ...axis, values: CLOCK, size: 46 }, { ...axis, size: 52, ...(most && { values: (_, ticks) => ticks.map(said) }) }],
      scales,
      legend: { show: false },
      hooks: { drawClear: [(plot) => drawBands(plot, spans.current, place.current)], setCursor: [({ cursor }) => setPointed(cursor.left >= 0 ? cursor.idx : null)] },
    };
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
  useEffect(() => drawn.current?.setData(data), [JSON.stringify([data, bands]), since, until]);
  const figure = ({ points }, place) => {
    const value = pointed === null ? points.at(-1)?.[1] : data[place + 1][pointed];
    return value === undefined || value === null ? "no figures" : said(value);
  };
  const moment = pointed === null ? undefined : data[0][pointed];
  const band = moment === undefined ? bands.at(-1) : bands.findLast((one) => one.since <= moment);
  const told = courses.map(({ name, points }) => `${name}: ${typeof points.at(-1)?.[1] === "number" ? said(points.at(-1)[1]) : "no figures"}`);
  if (bands.length) told.push(`circuit: ${bands.at(-1).name}`);
  return html`<figure class=${`card padded ${isWide ? "full" : ""}`}>
    <figcaption>
      <strong>${title}</strong>
      ${courses.map(
        (one, place) =>
          html`<span key=${one.name}><i class="swatch" style=${`background: var(${one.color})`}></i> ${one.name} <b>${figure(one, place)}</b></span>`,
      )}
      ${band && html`<span><i class="swatch" style=${`background: var(${band.color})`}></i> circuit <b>${band.name}</b></span>`}
      <span class="faint">${moment === undefined ? "now" : new Date(moment * 1000).toISOString().slice(11, 16)}</span>
    </figcaption>
    <div ref=${place} role="img" aria-label=${`${title}. Now: ${told.join(", ")}`}></div>
  </figure>`;
}

// Spans of time as grounds of their own colour, with their names where there is room.
function drawBands(plot, bands, place) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  ctx.textBaseline = "top";
  for (const { name, since, until, color } of bands) {
    const [from, to] = [since, until].map((one) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(one, "x", true))));
    ctx.fillStyle = colour(color, place);
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    const margin = 4 * devicePixelRatio;
    if (ctx.measureText(name).width + 2 * margin > to - from) continue;
    ctx.fillStyle = colour("--faint", place);
    ctx.fillText(name, from + margin, bbox.top + margin);
  }
  ctx.restore();
}

// Ticks by a clock of 24 hours, a new day with its date: what a tick's distance is, its default, its form, and the form where
// year, day or minute are new. https://github.com/leeoniya/uPlot/tree/master/docs#axis--grid-opts
const CLOCK = [
  [86400, "{MM}-{DD}", null, null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
];

// Courses have figures at different moments; uPlot wants one row of moments, and ends a line at null.
function together(courses) {
  const moments = [...new Set(courses.flatMap((one) => one.points.map(([at]) => at)))].sort((a, b) => a - b);
  const columns = courses.map(({ points }) => {
    const known = new Map(points);
    return moments.map((at) => known.get(at));
  });
  return [moments, ...columns];
}
