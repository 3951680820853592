// Frontier, safe point and since on one line of time, and what holds the safe point where it is.

import { openRelease } from "./actions.js";
import { h, minute, s } from "./dom.js";
import { DEFINITIONS } from "./words.js";

const [GUTTER, WIDTH, RIGHT, LANE, TOP] = [200, 620, 90, 30, 66];

export function timelineView({ told, refresh }) {
  const { safety, status } = told;
  const number = (label) => (told.is_timed ? Date.parse(label.length <= 10 ? label : `${label}Z`) : Number(label));
  const end = [status.horizon, ...told.collections.map((each) => each.status.upper)].map(number).reduce((a, b) => Math.max(a, b));
  const holds = safety.holds.filter((each) => each.kind !== "frontier");
  const marks = [
    ["since", safety.since],
    ["safe point", safety.safe_point],
    ...(safety.frontier ? [["frontier", safety.frontier]] : []),
  ];
  const first = Math.min(...marks.map(([, label]) => number(label)), ...holds.map((each) => number(each.at)), number(told.epochs[0]?.[0] ?? told.start));
  const span = Math.max(1, end - first);
  const x = (label) => GUTTER + (WIDTH * (number(label) - first)) / span;
  const height = TOP + 26 + holds.length * LANE + 6;
  const frontier = safety.frontier ?? told.start;
  const band = (from, to, name, title) => x(to) > x(from) && s("rect", { class: `band ${name}`, x: x(from), y: TOP - 8, width: x(to) - x(from), height: 16, rx: 3 }, s("title", {}, title));
  const begin = told.epochs[0]?.[0] ?? told.start;
  return [
    h(
      "div",
      { class: "scroll", "data-scroll": "timeline" },
      s(
        "svg",
        { class: "timeline", width: GUTTER + WIDTH + RIGHT, height, viewBox: `0 0 ${GUTTER + WIDTH + RIGHT} ${height}`, role: "img", "aria-label": `Since ${safety.since}, safe point ${safety.safe_point}, frontier ${safety.frontier ?? "nowhere yet"}, due up to ${status.horizon}. ${safety.why}` },
        s("text", { x: 0, y: TOP + 4, class: "name" }, told.pipeline),
        s("rect", { class: "track", x: GUTTER, y: TOP - 8, width: WIDTH, height: 16, rx: 3 }),
        number(begin) < number(safety.since) && band(begin, safety.since, "merged", "merged: single epochs are gone"),
        band(safety.since, safety.safe_point, "behind", "behind the safe point: may be merged"),
        band(safety.safe_point, frontier, "open", "complete, kept epoch by epoch"),
        s("text", { x: GUTTER + WIDTH + 8, y: TOP + 4, class: "dim" }, status.horizon),
        flags(marks, x),
        holds.map((each, row) => lane(each, row, x)),
      ),
    ),
    h("p", { class: "dim" }, `Why is the safe point there? ${safety.why}.`),
    holds.length > 0 && table(told, holds, refresh),
  ];
}

// Names of points that stand close together go above one another.
function flags(marks, x) {
  const rows = [];
  return marks
    .map(([name, label]) => ({ name, label, at: x(label), width: 6.4 * `${name} ${label}`.length + 12 }))
    .sort((one, other) => other.at - one.at)
    .map((each) => {
      const from = each.at + each.width > GUTTER + WIDTH + RIGHT ? each.at - each.width : each.at;
      let row = rows.findIndex((left) => from + each.width < left);
      if (row < 0) row = rows.length;
      rows[row] = from;
      const y = TOP - 16 - row * 17;
      const kind = each.name.replace(" ", "-");
      return s("g", { class: `flag ${kind}` }, s("line", { x1: each.at, x2: each.at, y1: y - 9, y2: TOP + 10 }), s("text", { x: from < each.at ? each.at - 5 : each.at + 5, y, "text-anchor": from < each.at ? "end" : "start" }, `${each.name} ${each.label}`), s("title", {}, DEFINITIONS[each.name.split(" ")[0]]));
    });
}

function lane(hold, row, x) {
  const y = TOP + 36 + row * LANE;
  const name = `${hold.kind} ${hold.name}`.trim();
  return s(
    "g",
    { class: `lane${hold.is_expired ? " expired" : ""}` },
    s("text", { x: 0, y: y + 4, class: "dim" }, name.length > 30 ? `${name.slice(0, 29)}…` : name),
    s("line", { x1: x(hold.at), x2: GUTTER + WIDTH, y1: y, y2: y }),
    s("circle", { cx: x(hold.at), cy: y, r: 4.5 }),
    s("text", { x: GUTTER + WIDTH + 8, y: y + 4, class: "dim" }, hold.owner.length > 14 ? `${hold.owner.slice(0, 13)}…` : hold.owner),
    s("title", {}, `${name} of ${hold.owner || "nobody"} holds at ${hold.at}. To release it: ${hold.release}`),
  );
}

function table(told, holds, refresh) {
  const head = ["hold", "holds at", "owner", "since", "until", "to release it", ""].map((each) => h("th", { scope: "col" }, each));
  const rows = holds.map((each) =>
    h(
      "tr",
      {},
      h("td", {}, `${each.kind} ${each.name}`.trim()),
      h("td", {}, each.at),
      h("td", {}, each.owner || "–"),
      h("td", {}, minute(each.since)),
      h("td", {}, `${minute(each.until)}${each.is_expired ? " expired" : ""}`),
      h("td", { class: "dim" }, each.release),
      h("td", {}, each.is_releasable && h("button", { "data-key": `release-${each.name}`, disabled: !told.may.edit, title: told.may.edit ? `Release ${each.name}` : `You may not edit the DAG ${told.pipeline}`, onclick: () => openRelease(told.pipeline, each, refresh) }, "Release …")),
    ),
  );
  return h("div", { class: "scroll" }, h("table", { class: "facts" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}
