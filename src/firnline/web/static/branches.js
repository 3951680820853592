// What the pipeline would say if its code were another: branches, and where they differ from it.

import { ask } from "./api.js";
import { h, minute, plural, render } from "./dom.js";

let [of, found] = [null, null];

export function branchesView({ told, state, open }) {
  if (of !== told.pipeline) [of, found] = [told.pipeline, null];
  const place = h("div");
  const draw = () => render(place, found === null ? h("p", { class: "empty", "aria-busy": "true" }, "Reading the branches …") : list(told, state, open));
  draw();
  const drawn = JSON.stringify(found);
  ask(told.pipeline, "/branches").then(
    (answer) => {
      if (of !== told.pipeline) return;
      found = answer.branches;
      if (JSON.stringify(found) !== drawn) draw();
    },
    (error) => render(place, h("p", { class: "banner failed", role: "alert" }, error.message)),
  );
  return h("section", { "aria-label": "Branches" }, h("h2", {}, "Branches"), place);
}

function list(told, state, open) {
  if (!found.length)
    return h("div", { class: "empty" }, h("h2", {}, "No branches"), h("p", {}, "A branch is the pipeline with other code beside it. Choose an epoch in the overview and branch from there."));
  const head = ["branch", "begins at", "complete up to", "epochs behind", "code", "owner", "since", ""].map((each) => h("th", { scope: "col" }, each));
  const rows = found.map((each) =>
    h(
      "tr",
      { "data-branch": each.branch },
      h("th", { scope: "row" }, each.branch),
      [each.at ?? "half dropped", each.frontier ?? "–", each.behind, each.code ?? "the project's own", each.owner || "–", minute(each.created_at)].map((cell) => h("td", {}, String(cell))),
      h("td", {}, each.frontier && h("button", { "data-key": `diff-${each.branch}`, "aria-pressed": String(state.branch === each.branch), onclick: () => open({ branch: state.branch === each.branch ? null : each.branch }) }, "Diff")),
    ),
  );
  return [h("div", { class: "scroll" }, h("table", { class: "facts" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows))), state.branch && differences(told, state.branch)];
}

function differences(told, branch) {
  const place = h("div", { class: "detail", role: "region", "aria-label": `Differences of ${branch}` }, h("p", { class: "dim", "aria-busy": "true" }, "Comparing …"));
  ask(told.pipeline, `/diff?${new URLSearchParams({ branch })}`).then(
    (answer) => render(place, compared(answer, branch)),
    (error) => render(place, h("p", { class: "said failed", role: "alert" }, error.message)),
  );
  return place;
}

function compared({ first, collections }, branch) {
  const head = ["collection", "", "parts that differ", "epochs that differ", "columns"].map((each) => h("th", { scope: "col" }, each));
  const rows = collections.map((each) => {
    const epochs = each.epochs.filter((one) => one.parts).map((one) => one.epoch);
    const columns = [...each.columns_added.map((name) => `+ ${name}`), ...each.columns_removed.map((name) => `- ${name}`)];
    const kind = each.verdict === "same" ? (epochs.length ? "changed" : "whole") : "gap";
    return h("tr", { "data-diff": each.collection }, h("th", { scope: "row" }, each.collection), h("td", {}, h("span", { class: `badge ${kind}` }, each.verdict)), h("td", {}, `${each.differing_parts} of ${each.parts}`), h("td", { class: "dim" }, epochs.length > 6 ? `${epochs.slice(0, 6).join(", ")} and ${epochs.length - 6} more` : epochs.join(", ") || "–"), h("td", {}, columns.join(", ") || "–"));
  });
  const why = collections.find((each) => each.collection === first)?.why;
  return [
    h("h3", {}, first ? `It differs first in ${first}` : `${branch} and the pipeline are the same`),
    why && h("p", { class: "dim" }, why),
    h("div", { class: "scroll" }, h("table", { class: "facts" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows))),
    h("p", { class: "dim" }, `By digests of ${plural(collections.length, "collection")}. The rows: firnline diff main ${branch}`),
  ];
}
