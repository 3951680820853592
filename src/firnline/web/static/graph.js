// The pipeline as a graph: sources at the left, what is made of them to the right of it.

import { count, h, plural, press, s } from "./dom.js";
import { CONDITIONS } from "./words.js";

const [WIDTH, HEIGHT, ACROSS, DOWN] = [196, 54, 60, 16];

// A column for each collection, after all that it reads; rows near those of its inputs.
export function placed(lines) {
  const columns = new Map();
  for (const line of lines) columns.set(line.name, Math.max(-1, ...line.inputs.map((each) => columns.get(each) ?? -1)) + 1);
  const taken = [];
  const places = new Map();
  for (const line of lines) {
    const column = columns.get(line.name);
    const rows = line.inputs.map((each) => places.get(each)?.row).filter((row) => row !== undefined);
    let row = rows.length ? Math.round(rows.reduce((sum, each) => sum + each, 0) / rows.length) : 0;
    while (taken.some(([c, r]) => c === column && r === row)) row += 1;
    taken.push([column, row]);
    places.set(line.name, { column, row, x: column * (WIDTH + ACROSS), y: row * (HEIGHT + DOWN) });
  }
  return places;
}

export function graphView({ told, state, open }) {
  const foreign = [...new Set(told.collections.flatMap((line) => line.inputs.filter((each) => each.includes("."))))];
  const lines = [...foreign.map((name) => ({ name, inputs: [], isForeign: true })), ...told.collections];
  const places = placed(lines);
  const all = [...places.values()];
  const width = Math.max(...all.map((each) => each.x)) + WIDTH + 4;
  const height = Math.max(...all.map((each) => each.y)) + HEIGHT + 4;
  const edges = lines.flatMap((line) => line.inputs.map((input) => edge(places.get(input), places.get(line.name))));
  const nodes = lines.map((line) => node(line, places.get(line.name), state.collection === line.name, () => open({ collection: state.collection === line.name ? null : line.name })));
  return h("div", { class: "scroll", "data-scroll": "graph" }, s("svg", { class: "graph", width, height, viewBox: `-2 -2 ${width} ${height}`, role: "group", "aria-label": "Pipeline graph" }, edges, nodes));
}

function edge(from, to) {
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const half = (x1 + x2) / 2;
  return s("path", { class: "edge", d: `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}` });
}

function node(line, { x, y }, isSelected, act) {
  if (line.isForeign)
    return s("g", { class: "node foreign", transform: `translate(${x} ${y})` }, s("rect", { width: WIDTH, height: HEIGHT, rx: 8 }), s("text", { x: 14, y: 24, class: "name" }, cut(line.name)), s("text", { x: 14, y: 41, class: "dim" }, "another pipeline"));
  const rows = line.stored ? `${count(line.stored.weight)} rows` : "no log yet";
  const about = `${line.name}, ${line.kind}, ${CONDITIONS[line.condition]}, ${rows}, complete up to ${line.status.upper}`;
  return s(
    "g",
    { class: `node ${line.condition}${isSelected ? " selected" : ""}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "aria-pressed": String(isSelected), "aria-label": about, "data-key": `node-${line.name}`, ...press(act) },
    s("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
    s("rect", { class: "mark", width: 4, height: HEIGHT - 16, x: 7, y: 8, rx: 2 }),
    s("text", { x: 20, y: 23, class: "name" }, cut(line.name)),
    s("text", { x: 20, y: 41, class: "dim" }, `${line.condition === "whole" ? line.kind : CONDITIONS[line.condition]} · ${rows} · ${plural(line.parts, "part")}`),
    s("title", {}, `${about}${line.doc ? `\n\n${line.doc}` : ""}`),
  );
}

const cut = (name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);
