// Which view is open, and what it is told.

import { airflow, watch } from "./api.js";
import { openRepair } from "./actions.js";
import { branchesView } from "./branches.js";
import { h, render } from "./dom.js";
import { follow, go, runPage } from "./embedding.js";
import { lineageView } from "./lineage.js";
import { listView } from "./list.js";
import { overviewView } from "./overview.js";
import { qualityView } from "./quality.js";
import { storageView } from "./storage.js";

const VIEWS = {
  overview: ["Overview", overviewView],
  lineage: ["Lineage", lineageView],
  storage: ["Storage", storageView],
  quality: ["Quality", qualityView],
  branches: ["Branches", branchesView],
};
const NOWHERE = { dag_id: null, view: null, run_id: null, upto: null, cell: null, collection: null, of: null, part: null, branch: null };
const app = document.getElementById("app");
const state = Object.fromEntries(new URLSearchParams(location.search));
let [watching, told, failure] = [null, null, null];

// What is in the address can be sent to a colleague.
function open(changes) {
  const before = state.dag_id;
  Object.assign(state, changes);
  for (const name of Object.keys(state)) if (state[name] === undefined || state[name] === null) delete state[name];
  history.replaceState(null, "", `${location.pathname}?${new URLSearchParams(state)}`);
  if (before !== state.dag_id || "upto" in changes) begin();
  else draw();
}

function begin() {
  watching?.end();
  [told, failure] = [null, null];
  draw();
  const query = new URLSearchParams(state.upto ? { upto: state.upto } : {});
  const url = state.dag_id ? `api/pipelines/${encodeURIComponent(state.dag_id)}?${query}` : "api/pipelines";
  watching = watch(
    url,
    (document) => {
      [told, failure] = [document, null];
      draw();
    },
    (error) => {
      failure = error;
      draw();
    },
  );
}

function draw() {
  if (!state.dag_id) {
    render(app, told ? listView(told, open) : waiting());
    return;
  }
  if (!told) {
    render(app, head(), waiting());
    return;
  }
  const [, view] = VIEWS[state.view] ?? VIEWS.overview;
  render(app, head(), failure && h("p", { class: "banner failed", role: "alert" }, failure.message), view({ told, state, open, refresh }));
}

const refresh = () => watching.again();

function waiting() {
  if (!failure) return h("p", { class: "empty", "aria-busy": "true" }, "Reading the logs …");
  if (failure.status === 404 && state.dag_id)
    return h("div", { class: "empty" }, h("h2", {}, "Not a pipeline of Firnline"), h("p", {}, `The DAG ${state.dag_id} has none, so there is nothing to show here.`));
  return h("div", { class: "empty", role: "alert" }, h("h2", {}, "Nothing to show"), h("p", {}, failure.message));
}

function head() {
  const tabs = Object.entries(VIEWS).map(([name, [label]]) => {
    const isOpen = name === (VIEWS[state.view] ? state.view : "overview");
    return h(
      "button",
      { role: "tab", "data-key": `tab-${name}`, "aria-selected": String(isOpen), tabindex: isOpen ? 0 : -1, onclick: () => open({ view: name }), onkeydown: turn },
      label,
    );
  });
  return h(
    "header",
    { class: "head" },
    h("div", { class: "title" }, !state.on && [h("button", { class: "link", onclick: () => open(NOWHERE) }, "Pipelines"), h("span", { class: "dim" }, "/")], h("h1", {}, state.dag_id)),
    told && h("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, tabs),
    told && h("div", { class: "acts" }, told.repairing && repairing(told.repairing), repairButton()),
  );
}

function repairing(id) {
  const href = runPage("firnline_repair", id);
  return h("a", { class: "live", href, onclick: (event) => go(event, href) }, "a repair runs");
}

function repairButton() {
  const why = told.may.repair ? "Compare with storage, and make again what is lost" : "You may not run the DAG firnline_repair";
  return h("button", { "data-key": "repair", disabled: !told.may.repair, title: why, onclick: () => openRepair(state.dag_id, null, refresh) }, "Repair …");
}

function turn(event) {
  const names = Object.keys(VIEWS);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = names.indexOf(VIEWS[state.view] ? state.view : "overview");
  const name = names[(at + step + names.length) % names.length];
  open({ view: name });
  app.querySelector(`[data-key="tab-${name}"]`)?.focus();
}

// On a run's page the epoch of that run is marked.
async function ofRun() {
  if (!state.dag_id || !state.run_id) return;
  try {
    const run = await airflow(`dags/${encodeURIComponent(state.dag_id)}/dagRuns/${encodeURIComponent(state.run_id)}`);
    state.run_start = run.data_interval_start ?? undefined;
    if (told) draw();
  } catch {
    // The page shows all epochs then.
  }
}

document.title = state.dag_id ? `${state.dag_id} · Firnline` : "Firnline";
follow();
begin();
ofRun();
