import { expect, test } from "vitest";
import { planRecovery, type Remains } from "../../../../agent/recovery/plan.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";

const container = (id: string, slot: number, runtime = "r2") => ({
  id,
  slot,
  pid: slot,
  controlToken: "t",
  build,
  resources,
  runtime,
  upperDirectory: undefined,
  createdAt: 0,
});
const execution = (id: string, containerId: string, running = true) => ({
  id,
  sandboxId: `s${id}`,
  projectId: undefined,
  containerId,
  egress: OPEN,
  endAt: 0,
  onTimeout: { does: "kill" as const, memory: true },
  startedAt: 0,
  warm: false,
  running,
});
const found = (id: string, running = true) => ({ id, name: id, running });

function plan(more: Partial<Remains>) {
  const nothing: Remains = {
    known: [],
    executions: [],
    found: [],
    alive: () => true,
    runtime: "r2",
    slots: [],
    annotations: [],
    building: new Set<string>(),
    paused: new Map(),
    held: new Set<string>(),
  };
  return planRecovery({ ...nothing, ...more });
}

test("a sandbox that is recorded and alive is kept with its slot and annotation", () => {
  const steps = plan({
    known: [container("c1", 2)],
    executions: [execution("e1", "c1")],
    found: [found("c1")],
    slots: [2],
    annotations: ["c1"],
  });
  expect(steps.sandboxes).toMatchObject([{ container: { id: "c1" }, execution: { id: "e1" } }]);
  expect(steps).toMatchObject({ removeContainers: [], removeSlots: [], removeAnnotations: [], ended: [] });
});

test("a sandbox's container that still has its name in the pool is renamed", () => {
  const steps = plan({
    known: [container("c1", 2), container("c2", 3), container("p1", 4)],
    executions: [execution("e1", "c1"), execution("e2", "c2")],
    found: [found("c1"), { ...found("c2"), name: "svc-se2" }, found("p1")],
  });
  expect(steps.rename).toEqual([{ id: "c1", name: "svc-se1" }]);
});

test("a sandbox with an older envd is kept, a pooled container with one is not", () => {
  const steps = plan({
    known: [container("c1", 2, "r1"), container("p1", 3, "r1"), container("p2", 4, "r2")],
    executions: [execution("e1", "c1")],
    found: [found("c1"), found("p1"), found("p2")],
    slots: [2, 3, 4],
  });
  expect(steps.sandboxes.map((kept) => kept.container.id)).toEqual(["c1"]);
  expect(steps.pooled.map(({ id }) => id)).toEqual(["p2"]);
  expect(steps.removeContainers).toEqual(["p1"]);
  expect(steps.removeSlots).toEqual([3]);
});

test("a sandbox whose container is dead, missing or another process is reported as ended", () => {
  const known = [container("dead", 2), container("gone", 3), container("reused", 4)];
  const steps = plan({
    known,
    executions: [execution("e1", "dead"), execution("e2", "gone"), execution("e3", "reused")],
    found: [found("dead", false), found("reused")],
    alive: ({ id }) => id !== "reused",
    slots: [2, 3, 4],
  });
  expect(steps.ended.map(({ id }) => id)).toEqual(["e1", "e2", "e3"]);
  expect(steps.removeContainers).toEqual(["dead", "reused"]);
  expect(steps.forgetContainers).toEqual(["dead", "gone", "reused"]);
  expect(steps.removeSlots).toEqual([2, 3, 4]);
});

test("after a reboot, which took the links, the firewall forgets the slots of all containers that are not kept", () => {
  const steps = plan({
    known: [container("ran", 2), container("pooled", 3)],
    executions: [execution("e1", "ran")],
    found: [found("ran", false), found("pooled", false)],
    slots: [],
  });
  expect(steps).toMatchObject({ removeContainers: ["ran", "pooled"], removeSlots: [2, 3] });
});

test("an interrupted claim is removed and not reported", () => {
  const steps = plan({
    known: [container("c1", 2)],
    executions: [execution("e1", "c1", false)],
    found: [found("c1")],
  });
  expect(steps).toMatchObject({ sandboxes: [], pooled: [], ended: [], removeContainers: ["c1"] });
  expect(steps.unstarted.map(({ id }) => id)).toEqual(["e1"]);
});

test("a frozen container whose resume with memory was interrupted is kept, one whose disk was booted is not", () => {
  const known = [container("frozen", 2), container("thawed", 3), container("booted", 4), container("starting", 5)];
  const steps = plan({
    known,
    executions: [
      execution("e1", "thawed", false),
      execution("e2", "booted", false),
      execution("e3", "starting", false),
    ],
    found: known.map(({ id }) => found(id)),
    alive: ({ id }) => id !== "starting",
    paused: new Map([
      ["frozen", { snapshotId: "s1", resuming: false }],
      ["thawed", { snapshotId: "s2", resuming: true }],
      ["booted", { snapshotId: "s3", resuming: false }],
      ["starting", { snapshotId: "s4", resuming: false }],
    ]),
    slots: [2, 3, 4, 5],
    annotations: known.map(({ id }) => id),
  });
  expect(steps.frozen).toMatchObject([
    { container: { id: "frozen" }, snapshotId: "s1", ran: false },
    { container: { id: "thawed" }, snapshotId: "s2", ran: true },
  ]);
  expect(steps).toMatchObject({ kill: ["booted", "starting"], removeSlots: [4, 5], removeContainers: [] });
  expect(steps.unstarted.map(({ id }) => id)).toEqual(["e1", "e2", "e3"]);
});

test("containers, slots and annotations without a record are removed", () => {
  const steps = plan({ found: [found("x"), found("y", false)], slots: [5, 6], annotations: ["x", "z"] });
  expect(steps).toMatchObject({ removeContainers: ["x", "y"], removeSlots: [5, 6], removeAnnotations: ["x", "z"] });
});

test("containers that a lost database named are kept; those that run are stopped, and their links removed", () => {
  const steps = plan({
    found: [found("paused", false), found("ran"), found("stranger")],
    held: new Set(["paused", "ran"]),
    slots: [2],
  });
  expect(steps).toMatchObject({ kill: ["ran"], removeContainers: ["stranger"], removeSlots: [2] });
});
