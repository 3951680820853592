// What an epoch, or one part of it, came from or led to: a graph that grows click by click.

import { ask } from "./api.js";
import { count, h, plural, press, render, s, time } from "./dom.js";

const [WIDTH, HEIGHT, ACROSS, DOWN] = [210, 58, 56, 16];
let [asked, version, found, failure, opened, picked] = [null, null, null, null, new Set(), null];

export function lineageView({ told, state, open }) {
  const last = told.status.frontier && told.collections.at(-1);
  const [collection, epoch] = (state.of ?? (last ? `${last.name}@${newest(last)}` : "@")).split("@");
  const direction = state.direction === "downstream" ? "downstream" : "upstream";
  const place = h("div", { class: "lineage" });
  const query = new URLSearchParams({ collection, epoch, direction, ...(state.part ? { part: state.part } : {}) });
  const draw = () => render(place, drawing(state, open));
  const key = `${told.pipeline}?${query}`;
  const now = JSON.stringify(told.collections.map((each) => each.cells.find((cell) => cell.epoch === epoch)?.published_at)); // a rewind takes back, a replay makes anew
  if (!epoch || epoch === "undefined") render(place, h("p", { class: "empty" }, "No epoch is published yet."));
  else if (key === asked && now === version) draw();
  else {
    if (key !== asked) [found, opened, picked] = [null, new Set(), null];
    [asked, version, failure] = [key, now, null];
    draw();
    const ifStillAsked = (act) => (given) => {
      if (key !== asked || now !== version) return;
      act(given);
      open({});
    };
    ask(told.pipeline, `/lineage?${query}`).then(
      ifStillAsked((answer) => {
        [found, picked] = [answer, picked ?? answer.nodes[0].id];
        opened.add(answer.nodes[0].id);
      }),
      ifStillAsked((error) => (failure = error)),
    );
  }
  return h("section", { "aria-label": "Lineage" }, h("h2", {}, "Lineage"), choices(told, { collection, epoch, direction, part: state.part }, open), place);
}

const newest = (line) => line.cells.filter((each) => each.published_at && each.state !== "merged").at(-1)?.epoch;

function choices(told, { collection, epoch, direction, part }, open) {
  const line = told.collections.find((each) => each.name === collection);
  const epochs = line ? line.cells.filter((each) => each.published_at && each.state !== "merged").map((each) => each.epoch).reverse() : [];
  if (epoch && epoch !== "undefined" && !epochs.includes(epoch)) epochs.push(epoch);
  const of = (name, at) => open({ of: `${name}@${at}`, part: null });
  const select = (name, label, values, value, act) =>
    h("label", {}, label, h("select", { "data-key": `choice-${name}`, onchange: (event) => act(event.target.value) }, values.map(([each, text]) => h("option", { value: each, selected: String(each) === String(value) }, text))));
  return h(
    "div",
    { class: "choices" },
    select("collection", "collection", told.collections.map((each) => [each.name, each.name]), collection, (name) => of(name, newest(told.collections.find((each) => each.name === name)) ?? epoch)),
    select("epoch", "epoch", epochs.map((each) => [each, each]), epoch, (each) => of(collection, each)),
    select("part", "part", [["", "all"], ...Array.from({ length: line?.parts ?? 0 }, (_, number) => [String(number), number])], part ?? "", (each) => open({ part: each || null })),
    select("direction", "show", [["upstream", "what it came from"], ["downstream", "what came of it"]], direction, (each) => open({ direction: each })),
  );
}

// The nodes that are reached from the first through those that were opened, each in a column after that it was reached from.
export function shown({ nodes, edges, direction }, isOpen) {
  const next = (id) => edges.filter((each) => (direction === "upstream" ? each.reader : each.input) === id);
  const there = (edge) => (direction === "upstream" ? edge.input : edge.reader);
  const columns = new Map([[nodes[0].id, 0]]);
  const lines = [];
  for (const waiting = [nodes[0].id]; waiting.length; ) {
    const id = waiting.shift();
    if (!isOpen.has(id)) continue;
    for (const edge of next(id)) {
      const other = there(edge);
      lines.push([id, other, edge]);
      if ((columns.get(other) ?? -1) <= columns.get(id)) {
        columns.set(other, columns.get(id) + 1);
        waiting.push(other);
      }
    }
  }
  const rows = new Map();
  const places = new Map([...columns].map(([id, column]) => [id, { column, row: rows.set(column, (rows.get(column) ?? -1) + 1).get(column) }]));
  return { places, lines, more: new Set(nodes.filter((each) => next(each.id).length && !isOpen.has(each.id)).map((each) => each.id)) };
}

function drawing(state, open) {
  if (failure) return h("p", { class: "banner failed", role: "alert" }, failure.message, " ", h("button", { class: "link", "data-key": "again", onclick: () => ((asked = null), open({})) }, "Try again"));
  if (!found) return h("p", { class: "empty", "aria-busy": "true" }, "Reading the lineage …");
  const { places, lines, more } = shown(found, opened);
  const depth = Math.max(...[...places.values()].map((each) => each.column));
  const side = (column) => (found.direction === "upstream" ? depth - column : column);
  const at = (id) => ({ x: side(places.get(id).column) * (WIDTH + ACROSS), y: places.get(id).row * (HEIGHT + DOWN) });
  const width = (depth + 1) * WIDTH + depth * ACROSS + 4;
  const height = (Math.max(...[...places.values()].map((each) => each.row)) + 1) * (HEIGHT + DOWN);
  const nodes = found.nodes.filter((each) => places.has(each.id));
  const selected = found.nodes.find((each) => each.id === picked) ?? found.nodes[0];
  const act = (id) => {
    if (more.has(id)) opened.add(id);
    picked = id;
    open({});
  };
  return [
    h(
      "div",
      { class: "scroll", "data-scroll": "lineage" },
      s(
        "svg",
        { class: "graph", width, height, viewBox: `-2 -2 ${width} ${height}`, role: "group", "aria-label": "Lineage graph" },
        lines.map(([one, other, edge]) => {
          const [left, right] = at(one).x < at(other).x ? [at(one), at(other)] : [at(other), at(one)];
          const [x1, y1, x2, y2] = [left.x + WIDTH, left.y + HEIGHT / 2, right.x, right.y + HEIGHT / 2];
          const half = (x1 + x2) / 2;
          const parts = edge.parts === "same" ? "part by part" : "all parts";
          return s("path", { class: `edge ${edge.parts}`, d: `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}` }, s("title", {}, `${plural(edge.rows, "changed row")}, ${parts}`));
        }),
        nodes.map((each) => node(each, at(each.id), each.id === selected.id, more.has(each.id), () => act(each.id))),
      ),
    ),
    h("p", { class: "dim" }, more.size ? "Click a publication marked + to see what is behind it. Dashed lines: part by part; full lines: all parts." : "Dashed lines: part by part; full lines: all parts."),
    detail(selected, state, open),
  ];
}

function node(each, { x, y }, isSelected, hasMore, act) {
  const epochs = each.epochs.length > 1 ? `${each.epochs[0]} … ${each.epochs.at(-1)}` : each.epochs[0];
  const parts = each.of_parts === null ? "all parts" : `part ${each.of_parts.join(", ")}`;
  const about = `${each.collection} at ${epochs}, ${plural(each.rows, "changed row")}, ${parts}${hasMore ? ", more behind it" : ""}`;
  return s(
    "g",
    { class: `node publication ${each.kind}${isSelected ? " selected" : ""}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "aria-pressed": String(isSelected), "aria-label": about, "data-key": `publication-${each.id}`, ...press(act) },
    s("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
    s("text", { x: 14, y: 23, class: "name" }, each.collection.length > 24 ? `${each.collection.slice(0, 23)}…` : each.collection),
    s("text", { x: 14, y: 43, class: "dim" }, `${epochs} · ${count(each.rows)} rows · ${parts}`.slice(0, 36)),
    hasMore && s("text", { x: WIDTH - 20, y: 24, class: "more" }, "+"),
    s("title", {}, about),
  );
}

function detail(each, state, open) {
  const facts = [
    ["kind", each.kind],
    ["changed rows", `${count(each.rows)}, weight ${each.weight >= 0 ? "+" : ""}${count(each.weight)}`],
    ["took", time(each.seconds)],
    ["code", each.fingerprint.slice(0, 12)],
    ["attempt", each.attempt.slice(0, 12)],
    ["snapshot", each.snapshot],
    ["generation", each.generation],
    ["digest", each.digest.slice(0, 16)],
    ["later publications on it", each.later],
    ...(each.determinants.length ? [["taken from outside", each.determinants.join(", ")]] : []),
  ];
  const isOwn = !each.collection.includes(".");
  const isNarrowed = state.part === undefined;
  return h(
    "div",
    { class: "detail", role: "region", "aria-label": `Publication ${each.id}` },
    h("h3", {}, `${each.collection} at ${each.epochs.join(", ")}`),
    h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, String(value))])),
    isOwn &&
      h(
        "p",
        { class: "acts" },
        h("span", { class: "dim" }, each.parts.length ? (isNarrowed ? "Changed parts, to follow one of them:" : "Changed parts:") : "It changed no part."),
        each.parts.map((part) => h("button", { "data-key": `part-${part.part}`, onclick: () => open({ of: `${each.collection}@${each.epochs[0]}`, part: String(part.part) }) }, `${part.part}: ${plural(part.rows, "row")}`)),
        h("button", { "data-key": "root", onclick: () => open({ of: `${each.collection}@${each.epochs[0]}`, part: null }) }, "Begin here"),
      ),
  );
}
