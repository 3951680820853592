// Talks to the plugin and to Airflow's own API, in the user's session. Answers carry an ETag, so that what is unchanged costs little.

const HERE = new URL(".", document.baseURI);
export const AIRFLOW = new URL("..", HERE);
const EVERY = 5000;

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answered(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch {
    throw new Refusal(0, "Airflow does not answer.");
  }
  const document = await response.json().catch(() => ({}));
  if (response.ok) return { document, tag: response.headers.get("etag") };
  const error = document.error;
  const told = error ? `${error.code}: ${error.what}. ${error.todo}` : document.detail;
  const usual = { 401: "Your session has ended: log in to Airflow again.", 403: "You may not do this." };
  throw new Refusal(response.status, usual[response.status] ?? (typeof told === "string" ? told : `Airflow answered ${response.status}.`));
}

const body = (document, method = "POST") => ({
  method,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(document),
});

const path = (pipeline, rest = "") => new URL(`api/pipelines/${encodeURIComponent(pipeline)}${rest}`, HERE);

export const ask = async (pipeline, rest) => (await answered(path(pipeline, rest))).document;
export const tell = async (pipeline, rest, document) => (await answered(path(pipeline, rest), body(document))).document;
export const airflow = async (rest) => (await answered(new URL(`api/v2/${rest}`, AIRFLOW))).document;
export const run = async (dag, conf) =>
  (await answered(new URL(`api/v2/dags/${encodeURIComponent(dag)}/dagRuns`, AIRFLOW), body({ logical_date: null, conf }))).document;

// Ask again and again while the page is looked at; ``shown`` is called when something is new, ``failed`` when nothing comes.
export function watch(url, shown, failed) {
  let [tag, timer, ended] = [undefined, undefined, false];
  const look = async () => {
    clearTimeout(timer);
    if (ended) return;
    if (!document.hidden) {
      try {
        const found = await answered(new URL(url, HERE));
        if (!ended && (tag === undefined || found.tag !== tag)) shown(found.document);
        tag = found.tag;
      } catch (error) {
        tag = undefined;
        if (!ended) failed(error);
      }
    }
    if (!ended) timer = setTimeout(look, EVERY);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return {
    again: look,
    end: () => {
      ended = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    },
  };
}
