/** What `svc upgrade --check` says of versions that differ. */

import { expect, test } from "vitest";
import { type Here, type Running, upgradePlan } from "../../../cli/commands/operating/upgrade-plan.ts";
import { openDatabase } from "../../../orchestrator/store/database.ts";
import { SCHEMA } from "../../../shared/version.ts";

const here: Here = { version: "0.3.0", commit: "c".repeat(40), envdVersion: "0.6.13", schema: "schema-0016" };
const node = { id: "n1", version: "0.3.0", commit: here.commit, status: "ready", sandboxCount: 2 };
const same: Running = {
  orchestrator: { version: "0.3.0", commit: here.commit, envdVersion: "0.6.13", schema: "schema-0016" },
  nodes: [node],
  edges: ["e1"],
  envds: { "0.6.13": 2 },
};

const running = (change: Partial<Running["orchestrator"]>, nodes = same.nodes, envds = same.envds): Running => ({
  ...same,
  orchestrator: { ...same.orchestrator, ...change },
  nodes,
  envds,
});

test("nothing is to be done where everything is of this version", () => {
  expect(upgradePlan(here, same)).toEqual({ steps: [], refused: [], notes: [] });
});

test("orchestrators come first, then edges, then the nodes that are behind", () => {
  const old = { version: "0.2.4", commit: "b".repeat(40) };
  const { steps, refused } = upgradePlan(here, running({ ...old, schema: "schema-0012" }, [{ ...node, ...old }, node]));
  expect(refused).toEqual([]);
  expect(steps).toEqual([
    expect.stringMatching(
      /^each orchestrator: 0\.2\.4 \(b{12}\) -> 0\.3\.0 \(c{12}\), which brings the database from schema-0012 to schema-0016/,
    ),
    expect.stringMatching(/^edge e1: /),
    expect.stringMatching(/^node n1: 0\.2\.4 .*its 2 sandboxes run on$/),
  ]);
});

test("an upgrade that has got to the nodes names the edges too, because they do not report their version", () => {
  const { steps } = upgradePlan(here, running({}, [{ ...node, version: "0.2.4" }, node]));
  expect(steps).toEqual([expect.stringMatching(/^edge e1: /), expect.stringMatching(/^node n1: /)]);
});

test("another commit of the same version is an upgrade, and so is what runs from its sources", () => {
  expect(upgradePlan(here, running({ commit: "d".repeat(40) })).steps).toHaveLength(2);
  expect(upgradePlan({ ...here, commit: "source" }, running({ commit: "source" })).steps).toHaveLength(3);
});

test.each<[string, Running, RegExp]>([
  ["a database that lacks what this version needs", running({ schema: "schema-0017-contracts" }), /does not start/],
  [
    "an orchestrator two versions behind",
    running({ version: "0.1.9" }),
    /the orchestrator runs 0\.1\.9.*versions between/,
  ],
  [
    "a node two versions ahead",
    running({}, [{ ...node, version: "0.5.0" }]),
    /node n1 runs 0\.5\.0.*older than what runs/,
  ],
  ["another major version", running({}, [{ ...node, version: "1.3.0" }]), /older than what runs/],
  ["a node without a version", running({}, [{ ...node, version: "dev" }]), /no version/],
])("%s is refused", (_what, seen, words) => {
  const { refused } = upgradePlan(here, seen);
  expect(refused).toEqual([expect.stringMatching(words)]);
});

test.each<[string, Running, RegExp]>([
  ["a newer schema that only adds", running({ schema: "schema-0017" }), /goes on with it as it is/],
  ["a schema that is not said", running({ schema: undefined }), /does not say/],
  ["a node that is silent", running({}, [{ ...node, status: "unhealthy" }]), /node n1 is unhealthy: mend it first/],
  ["an earlier envd", running({}, [node], { "0.6.13": 1, "0.6.2": 3 }), /envd 0\.6\.2 until they end: 3;/],
])("%s is noted", (_what, seen, words) => {
  const { refused, notes } = upgradePlan(here, seen);
  expect({ refused, notes }).toEqual({ refused: [], notes: [expect.stringMatching(words)] });
});

test("the version names the newest step of the schema", async () => {
  const opened = await openDatabase(":memory:");
  await opened.close();
  expect(opened.schema).toBe(SCHEMA);
});
