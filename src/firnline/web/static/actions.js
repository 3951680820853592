// What changes something is said first, and done only when it is confirmed.

import { airflow, run, tell } from "./api.js";
import { h } from "./dom.js";
import { go, runPage } from "./embedding.js";

const dialog = document.getElementById("dialog");
const notes = document.getElementById("notes");
const REPAIR = "firnline_repair";
const LOOK = 2000;

function confirm(title, said, word, act) {
  const problem = h("p", { class: "said failed", role: "alert" });
  const yes = h("button", { class: "primary", type: "button", onclick: attempt }, word);
  const no = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  async function attempt() {
    [yes.disabled, problem.textContent] = [true, ""];
    try {
      await act();
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
      yes.disabled = false;
    }
  }
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), ...said.map((each) => h("p", {}, each)), problem, h("div", { class: "acts" }, no, yes));
  dialog.showModal();
  no.focus();
  return problem;
}

export function openRelease(pipeline, hold, refresh) {
  const said = [
    `${hold.kind} ${hold.name} of ${hold.owner || "nobody"} keeps every epoch from ${hold.at} on.`,
    "Without it, maintenance may merge those epochs, and who relied on it has to begin anew. This cannot be undone.",
  ];
  confirm(`Release ${hold.name}?`, said, "Release", async () => {
    await tell(pipeline, "/release", { hold: hold.name });
    note(`Released ${hold.kind} ${hold.name}.`, "done");
    await refresh();
  });
}

// What a rewind would do is asked first, and shown.
export async function openRewind(pipeline, collection, epoch, refresh) {
  const asked = { to: epoch, stage: collection };
  await openReport(pipeline, "/rewind", asked, `Rewind ${collection} to ${epoch}?`, "Rewind", refresh, (report) => [
    `${collection} and all that comes of it hold nothing from ${epoch} on, at once: ${lines(report)}.`,
    ...report.beyond.map((each) => `${each} of another pipeline has read what is taken out: rewind it too.`),
    "The next runs of these epochs compute them again. Until then it can be undone.",
  ]);
}

async function openUndo(pipeline, refresh) {
  await openReport(pipeline, "/undo", {}, "Undo the newest rewind?", "Undo", refresh, (report) => [`What it took out comes back as it was: ${lines(report)}.`]);
}

const lines = (report) => report.logs.map((each) => `${each.log} ends at ${each.after} instead of ${each.before}`).join(", ") || "no log changes";

async function openReport(pipeline, path, asked, title, word, refresh, said) {
  let report;
  try {
    report = await tell(pipeline, path, { ...asked, dry: true });
  } catch (error) {
    note(error.message, "failed");
    return;
  }
  confirm(title, said(report), word, async () => {
    await tell(pipeline, path, { ...asked, dry: false });
    const made = note([`${word}: done. `, path === "/rewind" && h("button", { class: "link", onclick: () => (made.remove(), openUndo(pipeline, refresh)) }, "Undo …")].filter(Boolean), "done");
    await refresh();
  });
}

export function openBranch(pipeline, epoch, refresh) {
  const name = h("input", { id: "branch-name", autocomplete: "off", maxlength: 100 });
  const said = [`A branch shares all that is before ${epoch}, holds the safe point there, and writes no row until it is run.`, h("label", { for: "branch-name" }, "Its name ", name)];
  confirm(`Branch from ${epoch}?`, said, "Branch", async () => {
    const made = await tell(pipeline, "/branch", { name: name.value, start: epoch });
    note(`The branch ${made.branch} begins at ${made.at}. Run it: firnline branch run ${made.branch} --pipeline ${pipeline}`, "done");
    await refresh();
  });
  name.focus();
}

export function openRepair(pipeline, collection, refresh) {
  const asked = collection ? `${pipeline}.${collection}` : pipeline;
  const said = [
    `The logs of ${asked} are compared with storage. What is lost or damaged is taken from replicas, or computed again.`,
    `It runs beside the epochs, as a run of the DAG ${REPAIR}. If nothing is lost, nothing is changed.`,
  ];
  const problem = confirm(`Repair ${asked}?`, said, "Repair", async () => {
    const started = await run(REPAIR, { collection: asked });
    ended(started.dag_run_id, refresh);
    await refresh();
  });
  airflow(`dags/${REPAIR}`).then(
    (dag) => {
      if (dag.is_paused) problem.textContent = `The DAG ${REPAIR} is paused: the repair waits until somebody unpauses it.`;
    },
    () => {
      problem.textContent = `Airflow knows no DAG ${REPAIR}: put dags/${REPAIR}.py into the project.`;
    },
  );
}

async function ended(id, refresh) {
  const href = runPage(REPAIR, id);
  const link = () => h("a", { href, onclick: (event) => go(event, href) }, "its run in Airflow");
  const said = note(["The repair waits or runs: ", link(), "."], "live");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK));
    const { state } = await airflow(`dags/${REPAIR}/dagRuns/${encodeURIComponent(id)}`).catch(() => ({ state: "lost" }));
    if (state === "queued" || state === "running") continue;
    said.remove();
    note(state === "success" ? ["The repair has ended: ", link(), "."] : ["The repair failed: ", link(), " says why."], state === "success" ? "done" : "failed");
    await refresh();
    return;
  }
}

function note(said, kind) {
  const made = h("div", { class: `note ${kind}` }, h("span", {}, said), h("button", { class: "link", "aria-label": "Dismiss", onclick: () => made.remove() }, "×"));
  notes.append(made);
  return made;
}
