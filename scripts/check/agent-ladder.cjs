/**
 * The ladder of the agent's folders, the top rung first: a folder imports only what stands on lower rungs, types included,
 * and nothing of its neighbours. docs/architecture.md shows the same ladder.
 */
const ladder = [
  ["main.ts", "app.ts", "host-deps.ts"],
  ["wiring"],
  ["api"],
  ["recovery", "disk-pressure"],
  ["builds"],
  ["snapshots", "proxy", "lease"],
  ["sandboxes"],
  ["node-disk", "volumes"],
  ["sandbox-disks", "procfs", "cpu-sets"],
  ["containers"],
  ["network"],
  ["egress-supervisor", "placeholders", "serving", "blobs"],
  ["joining"],
  ["host", "store"],
  ["egress", "config.ts"],
];

/** The same for the folders within a folder; "" are the files of the folder itself. */
const rooms = {
  blobs: ["", "trees", "stores", "content"],
  builds: ["", "images", "steps"],
  sandboxes: ["pool", ""],
  network: ["reach", "", "nft", "kernel"],
  snapshots: ["", "check", "beyond", "restore", "take", "connections", "store", "frozen", "criu"],
  egress: [
    "",
    "traffic",
    "company",
    "rewrite",
    "connect",
    "destinations",
    "dns",
    "sniff",
    "carry",
    "limits",
    "channel",
    "launch",
  ],
};

const comment = "move what the lower folder needs down to it, types too, or move the file that needs both up";
const folders = ladder.flat().filter((name) => !name.endsWith(".ts"));

// main.ts, app.ts and host-deps.ts use everything; that no folder imports them follows from the rules of the others.
const looksDown = ladder.flatMap((rung, height) =>
  rung
    .filter((name) => folders.includes(name))
    .map((folder) => {
      const lower = ladder.slice(height + 1).flat();
      const below = lower.filter((name) => folders.includes(name));
      const files = [...lower.filter((name) => !folders.includes(name)), ...(folder === "wiring" ? ["deps.ts"] : [])];
      const allowed = [folder, ...below].map((name) => `${name}/`);
      return {
        name: `agent-ladder-${folder}`,
        comment,
        severity: "error",
        from: { path: `^agent/${folder}/` },
        to: {
          path: "^agent/",
          pathNot: `^agent/(${[...allowed, ...files.map((name) => `${name.replace(".", "\\.")}$`)].join("|")})`,
        },
      };
    }),
);

const looksDownInside = Object.entries(rooms).flatMap(([folder, ordered]) => {
  const place = (room) => (room === "" ? `^agent/${folder}/[^/]+$` : `^agent/${folder}/${room}/`);
  return ordered.slice(1).map((room, height) => ({
    name: `agent-ladder-${folder}-${room || "itself"}`,
    comment,
    severity: "error",
    from: { path: place(room) },
    to: {
      path: ordered
        .slice(0, height + 1)
        .map(place)
        .join("|"),
    },
  }));
});

const holdsEveryRoom = Object.entries(rooms).map(([folder, ordered]) => ({
  name: `agent-ladder-${folder}-holds-every-room`,
  comment: `a new folder within agent/${folder} gets its place in scripts/agent-ladder.cjs`,
  severity: "error",
  from: {
    path: `^agent/${folder}/[^/]+/`,
    pathNot: `^agent/${folder}/(${ordered.filter((room) => room !== "").join("|")})/`,
  },
  to: {},
}));

const rules = [
  ...looksDown,
  ...looksDownInside,
  ...holdsEveryRoom,
  {
    name: "agent-ladder-holds-every-folder",
    comment: "a new folder of the agent gets its rung in scripts/check/agent-ladder.cjs",
    severity: "error",
    from: { path: "^agent/[^/]+/", pathNot: `^agent/(${folders.join("|")})/` },
    to: {},
  },
];

module.exports = { ladder, rooms, rules };
