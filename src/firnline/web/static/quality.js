// What checks said last.

import { count, h, minute, time } from "./dom.js";

export function qualityView({ told }) {
  if (!told.checks.length)
    return h("div", { class: "empty" }, h("h2", {}, "No checks"), h("p", {}, "Name suites of include/expectations in checks=[...] of a source or stage, and what they say appears here."));
  const head = ["", "collection", "check", "asked of", "blocks", "last epoch", "rows", "took", "asked", "said"].map((each) => h("th", { scope: "col" }, each));
  return h("section", { "aria-label": "Quality" }, h("h2", {}, "Checks"), h("div", { class: "scroll" }, h("table", { class: "facts" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, told.checks.map(row)))));
}

function row({ collection, suite, on, blocking, epoch, last }) {
  const kind = last === null ? "missing" : last.success ? "whole" : blocking ? "failed" : "changed";
  const word = { missing: "not asked", whole: "met", failed: "not met", changed: "warned" }[kind];
  const said = last === null ? "not asked yet" : last.success ? `${last.expectations} expectations met` : h("ul", { class: "said" }, last.failed.map((each) => h("li", {}, each)));
  return h(
    "tr",
    { "data-check": `${collection}.${suite}.${on}` },
    h("td", {}, h("span", { class: `badge ${kind}` }, word)),
    [collection, suite, on, blocking ? "yes" : "no", epoch ?? "–", last ? count(last.rows) : "–", time(last?.seconds), minute(last?.checked_at)].map((each) => h("td", {}, each)),
    h("td", {}, said),
  );
}
