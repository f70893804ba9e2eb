/**
 * The ladder of the orchestrator's folders, the top rung first: a folder imports only what stands on lower rungs, types
 * included, and nothing of its neighbours. docs/architecture.md shows the same ladder.
 */
const ladder = [
  ["main.ts", "app.ts"],
  ["api"],
  ["console"],
  ["repairs"],
  ["projects"],
  ["sandboxes", "snapshots"],
  ["builds", "volumes", "webhooks", "dashboard"],
  ["templates", "events", "usage", "identity", "audit", "rotation", "edges"],
  ["lifecycle"],
  ["secrets", "metrics"],
  ["nodes"],
  ["access", "network-policy", "machines"],
  ["base"],
  ["store"],
  ["callers", "edge", "forms", "config.ts"],
];

/** A pattern of the paths of these rungs. */
function pathsOf(rungs) {
  const names = rungs.flat();
  const files = names.filter((name) => name.endsWith(".ts")).map((name) => `${name.replace(".", "\\.")}$`);
  return `(${[...names.filter((name) => !name.endsWith(".ts")).map((name) => `${name}/`), ...files].join("|")})`;
}

// main.ts and app.ts construct everything; that nothing imports them follows from the rungs below.
const looksDown = ladder.slice(1).map((rung, index) => {
  const below = ladder.slice(index + 2);
  return {
    name: `orchestrator-ladder-${rung.join("-").replace(".ts", "")}`,
    comment:
      "a folder imports only what stands below it on the ladder; move what both need, types too, to the lower one",
    severity: "error",
    from: { path: `^orchestrator/${pathsOf([rung])}` },
    to: {
      path: "^orchestrator/",
      pathNot: ["^orchestrator/$1", ...(below.length === 0 ? [] : [`^orchestrator/${pathsOf(below)}`])],
    },
  };
});

const rules = [
  ...looksDown,
  {
    name: "orchestrator-ladder-holds-every-folder",
    comment: "a new folder of the orchestrator gets its rung in scripts/check/orchestrator-ladder.cjs",
    severity: "error",
    from: {},
    to: { path: "^orchestrator/", pathNot: `^orchestrator/${pathsOf(ladder)}` },
  },
];

module.exports = { ladder, rules };
