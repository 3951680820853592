// How logs are stored: layers, files, bytes, and how many rows are read for one of the state.

import { ask } from "./api.js";
import { count, h, minute, plural, render, s, size } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [520, 150, 44, 20];

export function storageView({ told }) {
  const names = ["collection", "layers", "files", "bytes", "stored rows", "rows of the state", "read amplification", "layers, oldest first"];
  const head = names.map((each, number) => h("th", { scope: "col", class: number > 0 && number < 7 ? "number" : null }, each));
  const lines = told.collections.filter((each) => each.stored);
  const past = h("div", { class: "charts" }, h("p", { class: "empty" }, "Reading the past …"));
  ask(told.pipeline, "/storage").then(
    (found) => render(past, charts(told, found)),
    (error) => render(past, h("p", { class: "banner failed" }, error.message)),
  );
  if (!lines.length) return h("p", { class: "empty" }, "No log holds anything yet.");
  return h("section", { "aria-label": "Storage" }, h("h2", {}, "Logs"), h("div", { class: "scroll" }, h("table", { class: "facts" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, lines.map(row)))), past);
}

function row({ name, stored }) {
  const most = Math.max(...stored.layers.map(([, , rows]) => rows), 1);
  const bars = [...stored.layers].reverse().map(([lower, upper, rows]) => h("i", { class: "layer", title: `[${lower}, ${upper}): ${plural(rows, "row")}`, "data-height": Math.max(2, Math.round((18 * rows) / most)) }));
  for (const bar of bars) bar.style.height = `${bar.dataset.height}px`;
  return h(
    "tr",
    { "data-log": name },
    h("th", { scope: "row" }, name),
    [stored.layers.length, stored.files].map((each) => h("td", { class: "number" }, count(each))),
    h("td", { class: "number" }, size(stored.bytes)),
    [stored.rows, stored.weight].map((each) => h("td", { class: "number" }, count(each))),
    h("td", { class: "number" }, stored.amplification === null ? "–" : `${stored.amplification.toFixed(2)} ×`),
    h("td", {}, h("span", { class: "layers", role: "img", "aria-label": plural(stored.layers.length, "layer") }, bars)),
  );
}

function charts(told, { samples, runs }) {
  const own = samples.filter((each) => !each.is_hidden);
  const names = [...new Set(own.map((each) => each.collection))];
  return [
    chart("Layers over epochs", own, names, (each) => each.layers),
    chart("Read amplification over epochs", own, names, (each) => each.amplification, 1),
    h("ul", { class: "legend" }, names.map((name, number) => h("li", {}, h("i", { class: `line c${number % 8}` }), name))),
    h("h2", {}, "Maintenance"),
    runs.length ? h("p", {}, `${plural(runs.length, "run")}, the last ${minute(runs.at(-1).at)}: ${plural(sum(runs, "merges"), "merge")}, ${size(sum(runs, "rewritten"))} rewritten, ${size(sum(runs, "freed"))} freed.`) : h("p", { class: "dim" }, "Maintenance has not run yet."),
  ];
}

const sum = (runs, name) => runs.reduce((total, each) => total + each[name], 0);

function chart(title, samples, names, value, floor = 0) {
  const uppers = [...new Set(samples.map((each) => each.upper))].sort((one, other) => (Number(one) - Number(other) || (one < other ? -1 : 1)));
  const most = Math.max(floor * 1.25, 1, ...samples.map((each) => value(each) ?? 0));
  const x = (upper) => LEFT + ((WIDTH - LEFT - 10) * uppers.indexOf(upper)) / Math.max(1, uppers.length - 1);
  const y = (number) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - 12) * number) / most;
  const lines = names.map((name, number) => {
    const points = samples.filter((each) => each.collection === name && value(each) !== null).map((each) => [x(each.upper), y(value(each))]);
    return s("g", { class: `series c${number % 8}` }, s("polyline", { points: points.map((each) => each.join(",")).join(" ") }), points.length < 40 && points.map(([cx, cy]) => s("circle", { cx, cy, r: 2.5 })), s("title", {}, name));
  });
  const ticks = [0, most / 2, most].map((each) => [s("line", { class: "axis", x1: LEFT, x2: WIDTH - 6, y1: y(each), y2: y(each) }), s("text", { class: "dim", x: LEFT - 6, y: y(each) + 4, "text-anchor": "end" }, most < 10 ? each.toFixed(1) : count(Math.round(each)))]);
  const ends = uppers.length ? [s("text", { class: "dim", x: LEFT, y: HEIGHT - 4 }, uppers[0]), uppers.length > 1 && s("text", { class: "dim", x: WIDTH - 6, y: HEIGHT - 4, "text-anchor": "end" }, uppers.at(-1))] : [];
  return h("figure", {}, h("figcaption", {}, title), s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, ticks, lines, ends));
}
