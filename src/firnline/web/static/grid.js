// Epochs across, collections down. Arrow keys move, Enter opens what is known of a cell.

import { openBranch, openRewind } from "./actions.js";
import { count, h, minute, time } from "./dom.js";
import { go, runPage } from "./embedding.js";
import { STATES } from "./words.js";

export function gridView({ told, state, open, refresh }) {
  if (!told.epochs.length) return h("p", { class: "empty" }, "No epoch is due yet.");
  const isWide = told.epochs.length <= 12;
  const marked = told.epochs.findIndex(([lower]) => state.run_start && same(lower, state.run_start));
  const picked = state.cell?.split("@") ?? [];
  const rows = told.collections.map((line, row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, line.name),
      line.cells.map((cell, column) => {
        const isPicked = picked[0] === line.name && picked[1] === cell.epoch;
        const isFirst = picked.length ? isPicked : row === 0 && column === line.cells.length - 1;
        return h("td", { class: column === marked ? "marked" : null }, button(line, cell, { isPicked, isFirst, isWide }, () => open({ cell: isPicked ? null : `${line.name}@${cell.epoch}` })));
      }),
    ),
  );
  const header = h("tr", {}, h("td", {}), told.epochs.map(([lower], column) => h("th", { scope: "col", class: column === marked ? "marked" : null, "aria-label": lower }, h("span", {}, short(lower, told.epochs[column - 1]?.[0])))));
  const line = told.collections.find((each) => each.name === picked[0]);
  const cell = line?.cells.find((each) => each.epoch === picked[1]);
  return [
    h("div", { class: "scroll", "data-scroll": "grid" }, h("table", { class: `grid${isWide ? " wide" : ""}`, onkeydown: move, "aria-label": "Epochs by collection" }, h("thead", {}, header), h("tbody", {}, rows))),
    h(
      "div",
      { class: "row" },
      legend(told),
      h(
        "span",
        { class: "pager" },
        told.has_earlier && h("button", { "data-key": "earlier", onclick: () => open({ upto: told.epochs[0][0], cell: null }) }, "← earlier"),
        state.upto && h("button", { "data-key": "newest", onclick: () => open({ upto: null, cell: null }) }, "newest"),
      ),
    ),
    cell && detail(told, line, cell, { open, refresh }),
  ];
}

const same = (label, moment) => Date.parse(label.length <= 10 ? label : `${label}Z`) === Date.parse(moment);

// A label without what the one before it says already.
function short(label, before) {
  const [date, clock] = label.split("T");
  if (clock) return before?.startsWith(date) ? clock : `${date.slice(5)} ${clock}`;
  return /^\d{4}-\d\d-\d\d$/.test(date) ? date.slice(before?.slice(0, 4) === date.slice(0, 4) ? 5 : 0) : label;
}

function button(line, cell, { isPicked, isFirst, isWide }, act) {
  const [sign] = STATES[cell.state];
  const facts = [cell.rows === null ? null : `${count(cell.rows)} rows changed`, cell.seconds === null ? null : time(cell.seconds)].filter(Boolean).join(", ");
  const about = `${line.name}, ${cell.epoch}: ${cell.state}${facts ? `, ${facts}` : ""}`;
  return h(
    "button",
    { class: `cell ${cell.state}`, "data-key": `cell-${line.name}@${cell.epoch}`, "data-state": cell.state, tabindex: isFirst ? 0 : -1, "aria-pressed": String(isPicked), "aria-label": about, title: about, onclick: act },
    isWide && cell.rows !== null ? `${sign ? `${sign} ` : ""}${count(cell.rows)}` : sign,
  );
}

function move(event) {
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -1e6], End: [0, 1e6] }[event.key];
  const here = event.target.closest("td");
  if (!step || !here) return;
  event.preventDefault();
  const rows = [...event.currentTarget.tBodies[0].rows];
  const row = Math.min(rows.length - 1, Math.max(0, here.parentElement.sectionRowIndex + step[0]));
  const cells = rows[row].cells;
  const column = Math.min(cells.length - 1, Math.max(1, here.cellIndex + step[1]));
  const next = cells[column].firstElementChild;
  event.currentTarget.querySelectorAll("button").forEach((each) => (each.tabIndex = -1));
  next.tabIndex = 0;
  next.focus();
}

function legend(told) {
  const there = new Set(told.collections.flatMap((line) => line.cells.map((cell) => cell.state)));
  const shown = Object.entries(STATES).filter(([name]) => there.has(name));
  return h("ul", { class: "legend", "aria-label": "Legend" }, shown.map(([name, [sign, said]]) => h("li", { title: said }, h("i", { class: `cell ${name}`, "aria-hidden": "true" }, sign), name)));
}

function detail(told, line, cell, { open, refresh }) {
  const facts = [
    ["state", STATES[cell.state][1]],
    ["rows changed", cell.rows === null ? "not told apart" : count(cell.rows)],
    ["took", time(cell.seconds)],
    ["published", minute(cell.published_at)],
  ];
  const href = cell.run && runPage(told.pipeline, cell.run, cell.task);
  return h(
    "div",
    { class: "detail", role: "region", "aria-label": `Details of ${line.name} at ${cell.epoch}` },
    h("h3", {}, `${line.name} at ${cell.epoch}`),
    h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    cell.note && h("p", { class: "said" }, cell.note),
    h(
      "p",
      { class: "acts" },
      cell.published_at && cell.state !== "merged" && h("button", { "data-key": "to-lineage", onclick: () => open({ view: "lineage", of: `${line.name}@${cell.epoch}`, part: null }) }, "Where it came from"),
      cell.published_at && cell.state !== "merged" && h("button", { "data-key": "rewind", disabled: !told.may.edit, title: told.may.edit ? "Take out this epoch and those after it" : `You may not edit the DAG ${told.pipeline}`, onclick: () => openRewind(told.pipeline, line.name, cell.epoch, refresh) }, "Rewind to here …"),
      cell.published_at && cell.state !== "merged" && h("button", { "data-key": "branch", disabled: !told.may.edit, title: told.may.edit ? "Try other code from this epoch on, beside the pipeline" : `You may not edit the DAG ${told.pipeline}`, onclick: () => openBranch(told.pipeline, cell.epoch, refresh) }, "Branch from here …"),
      href && h("a", { href, onclick: (event) => go(event, href) }, "Its task in Airflow"),
    ),
  );
}
