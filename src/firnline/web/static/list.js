// All pipelines that the user may see.

import { h, plural, time } from "./dom.js";
import { CONDITIONS } from "./words.js";
import { worst } from "./overview.js";

export function listView({ pipelines }, open) {
  if (!pipelines.length)
    return h("div", { class: "empty" }, h("h2", {}, "No pipelines"), h("p", {}, "Put one into include/pipelines/NAME.py, and its DAG into dags/. Those that you may see appear here."));
  return [h("header", { class: "head" }, h("h1", {}, "Pipelines")), h("div", { class: "cards" }, pipelines.map((each) => card(each, open)))];
}

function card(each, open) {
  if (each.error)
    return h("section", { class: "card failed" }, h("h2", {}, each.pipeline), h("p", { class: "said" }, `${each.error.code}: ${each.error.what}`));
  if (!each.conditions) return h("section", { class: "card", "aria-busy": "true" }, h("h2", {}, each.pipeline), h("p", { class: "dim" }, "It is being compiled …"));
  const condition = worst(each.conditions);
  return h(
    "button",
    { class: "card", "data-key": `card-${each.pipeline}`, onclick: () => open({ dag_id: each.pipeline }) },
    h("span", { class: "row" }, h("strong", {}, each.pipeline), h("span", { class: `badge ${condition}` }, CONDITIONS[condition])),
    each.doc && h("span", { class: "dim clamp" }, each.doc),
    h("span", { class: "strip", "aria-hidden": "true" }, each.strip.map((cell) => h("i", { class: cell.state, title: `${cell.epoch}: ${cell.state}` }))),
    h("span", { class: "row dim" }, h("span", {}, each.frontier ? `complete up to ${each.frontier}` : "no epoch is complete yet"), h("span", {}, each.late_by ? `late by ${time(each.late_by)}` : each.lag ? `${plural(each.lag, "epoch")} due` : "up to date")),
  );
}
