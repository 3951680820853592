// A pipeline at a glance: is it whole, fresh and safe?

import { graphView } from "./graph.js";
import { gridView } from "./grid.js";
import { timelineView } from "./timeline.js";
import { h, plural, time } from "./dom.js";
import { CONDITIONS } from "./words.js";

const ORDER = ["failed", "gap", "behind", "changed", "whole"];
export const worst = (conditions) => ORDER.find((each) => conditions.includes(each)) ?? "whole";

export function overviewView(page) {
  const { told, state } = page;
  const selected = told.collections.find((each) => each.name === state.collection);
  return [
    h("div", { class: "tiles" }, tiles(told)),
    h("section", { "aria-label": "Collections" }, h("h2", {}, "Collections"), graphView(page), selected && collection(selected)),
    h("section", { "aria-label": "Epochs" }, h("h2", {}, "Epochs"), gridView(page)),
    h("section", { "aria-label": "Time line" }, h("h2", {}, "Time line"), timelineView(page)),
  ];
}

function tiles(told) {
  const lacking = told.collections.filter((each) => each.condition === "gap");
  const failed = told.collections.filter((each) => each.condition === "failed");
  const names = (lines) => lines.map((each) => each.name).join(", ");
  const whole = failed.length ? "failed" : lacking.length ? "gap" : "whole";
  const { frontier, freshness, late_by: late, rewinds } = told.status;
  const due = told.lag ? `${plural(told.lag, "epoch")} due and not complete` : "every epoch that is due is there";
  const fresh = rewinds.length ? rewinds.join("; ") : late ? `late by ${time(late)}: due ${time(freshness)} after their end` : freshness ? `${due}; in time for ${time(freshness)}` : due;
  return [
    tile("Whole", whole, failed.length ? `${plural(failed.length, "collection")} failed` : lacking.length ? `${plural(lacking.length, "collection")} lack rows` : "Nothing is missing", failed.length ? names(failed) : lacking.length ? names(lacking) : plural(told.collections.length, "collection")),
    tile("Fresh", late ? "failed" : told.lag ? "behind" : "whole", frontier ? `Complete up to ${frontier}` : "No epoch is complete yet", fresh),
    tile("Safe", "plain", `Safe point ${told.safety.safe_point}`, `all after it would take ${time(told.safety.seconds)} to compute again`),
  ];
}

const tile = (name, kind, said, more) =>
  h("div", { class: `tile ${kind}` }, h("span", { class: "dim" }, name), h("strong", {}, said), h("span", { class: "dim" }, more));

function collection(line) {
  const { status } = line;
  const facts = [
    ["kind", line.kind],
    ["state", CONDITIONS[line.condition]],
    ["complete", `${status.completeness} parts`],
    ["log ends at", status.upper],
    ["epochs", `${status.done} done, ${status.missing} missing`],
    ["code", { same: "as made the newest epoch", changed: "changed since the newest epoch", edited: "edited since; only Spark can tell whether rows change", new: "new" }[status.code]],
    ["generation", status.generation],
    ["malformed", status.malformed],
  ];
  const said = [...status.failed, ...status.lacking, ...status.warned];
  return h(
    "div",
    { class: "detail", role: "region", "aria-label": `Details of ${line.name}` },
    h("h3", {}, line.name),
    line.doc && h("p", { class: "dim" }, line.doc),
    h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])),
    said.length > 0 && h("ul", { class: "said" }, said.map((each) => h("li", {}, each))),
  );
}
