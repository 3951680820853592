// What states look like and are called. Each has a sign beside its colour, so that colour alone tells nothing.

export const STATES = {
  computed: ["", "computed: the log holds it"],
  kept: ["✓", "kept: the last run found it in the log"],
  repaired: ["↻", "repaired: its rows were made again"],
  merged: ["≡", "merged with the epochs around it"],
  stale: ["~", "stale: today's code would give other rows"],
  gap: ["▨", "gap: rows are knowingly missing"],
  running: ["▸", "running: a task is at it"],
  failed: ["!", "failed: the last attempt ended with an error"],
  missing: ["", "missing: due, and not in the log"],
};

export const CONDITIONS = {
  whole: "whole",
  changed: "code changed",
  behind: "behind",
  gap: "lacks rows",
  failed: "failed",
};

export const DEFINITIONS = {
  frontier: "complete in all collections up to here",
  safe: "nothing below it is needed epoch by epoch any more",
  since: "up to here, epochs are merged",
};
