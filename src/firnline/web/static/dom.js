// Elements without a framework. Text only ever becomes text: nothing that is told by the server is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

// Replace what a container holds; who had the keyboard's focus has it again, and what was scrolled stays so.
export function render(container, ...children) {
  const key = document.activeElement?.closest("[data-key]")?.dataset.key;
  const scrolled = [...container.querySelectorAll("[data-scroll]")].map((each) => [each.dataset.scroll, each.scrollLeft]);
  container.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const [name, left] of scrolled) {
    const found = container.querySelector(`[data-scroll="${CSS.escape(name)}"]`);
    if (found) found.scrollLeft = left;
  }
  if (key) container.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// Enter and space do what a click does, for drawings.
export const press = (act) => ({
  onclick: act,
  onkeydown: (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act(event);
    }
  },
});

export const count = (number) => (number ?? 0).toLocaleString("en");
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function time(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes ?? 0, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

export const minute = (moment) => (moment ? moment.slice(0, 16).replace("T", " ") : "–");
