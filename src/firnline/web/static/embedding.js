// The page inside Airflow's own: it takes over light or dark, and its links lead to Airflow's pages.

import { AIRFLOW } from "./api.js";

function around() {
  try {
    return window.parent !== window && window.parent.document ? window.parent : null;
  } catch {
    return null;
  }
}

export function follow() {
  const outer = around();
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const root = outer?.document.documentElement;
    const told = root && (root.classList.contains("dark") || root.dataset.theme === "dark" || root.style.colorScheme === "dark");
    const isLight = root && (root.classList.contains("light") || root.style.colorScheme === "light");
    document.documentElement.dataset.theme = told || (!isLight && preferred.matches) ? "dark" : "light";
  };
  apply();
  preferred.addEventListener("change", apply);
  if (outer) new MutationObserver(apply).observe(outer.document.documentElement, { attributes: true });
}

// Airflow frames the page without leave to navigate; its router listens to its own history, though.
export function go(event, href) {
  const outer = around();
  if (!outer || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  outer.history.pushState(null, "", href);
  outer.dispatchEvent(new PopStateEvent("popstate"));
}

export const runPage = (dag, id, task) =>
  new URL(`dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(id)}${task ? `/tasks/${encodeURIComponent(task)}` : ""}`, AIRFLOW).href;
