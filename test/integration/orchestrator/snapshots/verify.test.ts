/** Checks of stored snapshots, and `svc snapshot verify` over them, on fake nodes. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PartState, SnapshotCheck } from "../../../../shared/agent-api/snapshot-check-shapes.ts";
import type { SnapshotVerification, StoredState } from "../../../../shared/api/stored/snapshot-checks.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { buildingOn } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { builtSvc, SLOW } from "../../cli/running-svc.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({ agents: 2 });
});
afterEach(() => cluster.stop());

const { paused, create, post } = sandboxesOn(() => cluster);
const { built } = buildingOn(() => cluster);
const operator = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const svc = builtSvc(() => ({
  SVC_API_URL: cluster.url,
  SVC_API_KEY: cluster.key,
  SVC_ADMIN_TOKEN: ADMIN_TOKEN,
}));

const ended = (memory: PartState, fault = "pages-1.img: its content has changed"): SnapshotCheck => ({
  state: "ended",
  doneBytes: 3,
  totalBytes: 3,
  parts: [
    {
      part: "memory",
      state: memory,
      bytes: 3,
      ...(memory === "whole" ? { faulty: 0, faults: [] } : { faulty: 1, faults: [fault] }),
    },
    { part: "disk", state: "read", bytes: 0, faulty: 0, faults: [] },
  ],
});

const list = async () => (await cluster.ask("GET", "/admin/snapshots", operator)).body as StoredState[];
const begin = (id: string) => cluster.ask("POST", `/admin/snapshots/${id}/checks`, operator);
const at = (id: string, checkID: string) => `/admin/snapshots/${id}/checks/${checkID}`;
const homeOf = ({ nodeID }: StoredState) => {
  const found = cluster.agents.find(({ nodeId }) => nodeId === nodeID);
  if (found === undefined) throw new Error("no node has it");
  return found;
};

describe("the list of what is stored", () => {
  test("has paused sandboxes and snapshots of all projects, in pages", async () => {
    const { sandboxID } = await paused();
    const running = await create();
    expect((await post(running.sandboxID, "snapshots", {})).status).toBe(201);
    const all = await list();
    expect(all.map(({ kind }) => kind).sort()).toEqual(["paused", "snapshot"]);
    expect(all.find(({ kind }) => kind === "paused")).toMatchObject({ id: sandboxID, inStore: false });
    const first = await cluster.ask("GET", "/admin/snapshots?limit=1", operator);
    const next = await cluster.ask(
      "GET",
      `/admin/snapshots?limit=1&nextToken=${first.headers.get("x-next-token")}`,
      operator,
    );
    expect([...(first.body as StoredState[]), ...(next.body as StoredState[])]).toEqual(all);
    expect((await cluster.ask("GET", "/admin/snapshots")).status).toBe(401);
  });
});

describe("a check", () => {
  test("asks the node that has the snapshot until it has ended, under one id", async () => {
    await paused();
    const [item] = await list();
    if (item === undefined) throw new Error("nothing is stored");
    const home = homeOf(item);
    home.onSnapshotCheck = () => ({ state: "running", doneBytes: 1, totalBytes: 3, parts: [] });
    const begun = await begin(item.snapshotID);
    expect(begun.status).toBe(202);
    const { checkID, verdict, copies } = begun.body as SnapshotVerification;
    expect(verdict).toBeNull();
    expect(copies).toMatchObject([{ place: "node", nodeID: item.nodeID, state: "running", doneBytes: 1 }]);
    home.onSnapshotCheck = () => ended("whole");
    const read = await cluster.ask("GET", at(item.snapshotID, checkID), operator);
    expect(read.body).toMatchObject({ checkID, verdict: "whole", good: [] });
    expect(new Set(home.snapshotChecks.asked.map(({ checkId }) => checkId))).toEqual(new Set([checkID]));
  });

  test("finds a good copy on another node, which has fetched the snapshot", async () => {
    await paused();
    const [item] = await list();
    if (item === undefined) throw new Error("nothing is stored");
    for (const agent of cluster.agents) agent.onSnapshotCheck = () => ended("whole");
    homeOf(item).onSnapshotCheck = () => ended("damaged");
    const other = cluster.agents.find(({ nodeId }) => nodeId !== item.nodeID)?.nodeId ?? "";
    expect((await begin(item.snapshotID)).body).toMatchObject({
      verdict: "damaged",
      good: [{ part: "memory", places: [`node/${other}`] }],
    });
  });

  test("of a template has its nodes read the image of the build, and nothing else of this id", async () => {
    const { buildID, templateID } = await built("app");
    const [item] = await list();
    expect(item).toMatchObject({ kind: "template", id: buildID, snapshotID: buildID, templateID, storedBytes: null });
    if (item === undefined) throw new Error("nothing is stored");
    const image = (state: PartState): SnapshotCheck => ({
      state: "ended",
      doneBytes: 3,
      totalBytes: 3,
      parts: [{ part: "image", state, bytes: 3, faulty: 0, faults: [] }],
    });
    for (const agent of cluster.agents)
      agent.onSnapshotCheck = () => ({ ...image("whole"), state: "absent", parts: [] });
    const home = homeOf(item);
    home.onSnapshotCheck = () => image("damaged");
    expect((await begin(buildID)).body).toMatchObject({
      verdict: "lost",
      copies: [{ place: "node", nodeID: home.nodeId, state: "damaged", parts: [{ part: "image" }] }],
    });
    home.onSnapshotCheck = () => image("whole");
    expect((await begin(buildID)).body).toMatchObject({ verdict: "whole" });
    for (const { asked } of cluster.agents.map(({ snapshotChecks }) => snapshotChecks))
      expect(asked.every(({ template, snapshotId }) => template === true && snapshotId === buildID)).toBe(true);
  });

  test("says why a node has read nothing, and is no judgement then", async () => {
    await paused();
    const [item] = await list();
    if (item === undefined) throw new Error("nothing is stored");
    homeOf(item).onSnapshotCheck = () => {
      throw new AppError("conflict", "it is in use");
    };
    expect((await begin(item.snapshotID)).body).toMatchObject({
      verdict: "unread",
      copies: [{ state: "unread", error: expect.stringContaining("in use") as string }],
    });
  });

  test("is cancelled on every node, and of an unknown snapshot is 404", async () => {
    await paused();
    const [item] = await list();
    if (item === undefined) throw new Error("nothing is stored");
    const { checkID } = (await begin(item.snapshotID)).body as SnapshotVerification;
    expect((await cluster.ask("DELETE", at(item.snapshotID, checkID), operator)).status).toBe(204);
    for (const { snapshotChecks } of cluster.agents) expect(snapshotChecks.cancelled).toEqual([checkID]);
    expect((await begin("00000000-0000-4000-8000-000000000000")).status).toBe(404);
  });
});

describe("svc snapshot verify", () => {
  test("shows each snapshot with its verdict, says what is damaged, and fails when something is", SLOW, async () => {
    const { sandboxID } = await paused();
    const running = await create();
    expect((await post(running.sandboxID, "snapshots", {})).status).toBe(201);
    await built("app");
    for (const agent of cluster.agents)
      agent.onSnapshotCheck = ({ snapshotId, template }) =>
        template === true || agent.snapshots.has(snapshotId)
          ? ended("whole")
          : { state: "absent", doneBytes: 0, totalBytes: 0, parts: [] };
    const good = await svc.run(["snapshot", "verify", "--all"]);
    expect(good.stdout.match(/^\S+ +(paused|snapshot|template) +\S+ +whole /gm)).toHaveLength(3);
    expect(good.code).toBe(0);
    for (const agent of cluster.agents) agent.onSnapshotCheck = () => ended("damaged");
    const bad = await svc.run(["snapshot", "verify", sandboxID]);
    expect(bad.stdout).toMatch(new RegExp(`paused +${sandboxID} +lost .*memory: nowhere`));
    expect(bad.stderr).toContain("memory damaged: pages-1.img: its content has changed");
    expect(bad.code).toBe(1);
  });

  test("refuses neither or both of a snapshot and --all, and names what is not there", SLOW, async () => {
    expect((await svc.run(["snapshot", "verify"])).code).toBe(2);
    expect((await svc.run(["snapshot", "verify", "one", "--all"])).code).toBe(2);
    const missing = await svc.run(["snapshot", "verify", "nosuchsandbox"]);
    expect(missing.code).toBe(3);
    expect(missing.stderr).toContain("there is no snapshot 'nosuchsandbox'");
  });
});
