/** What `GET /nodes?explain=` says of a node that would restore the memory of a template of another one. */

import { expect, test } from "vitest";
import { lacksForMemory } from "../../../../orchestrator/lifecycle/start/explain.ts";

const machine = { cpuFamily: "6", cpuModel: "85", cpuModelName: "Xeon", cpuArchitecture: "x86_64" };

function node(id: string, detail: Readonly<Record<string, string>>, over: Partial<typeof machine> = {}) {
  return { id, facts: { capabilities: { detail }, machine: { ...machine, ...over } } };
}

const home = node("home", { kernel: "6.8.0-40", criu: "3.19" });
const build = { kind: "template", id: "b", snapshotId: "s", memory: true, nodeId: "home" };
const lacks = (other: ReturnType<typeof node>, over: object = {}) =>
  lacksForMemory({ ...build, ...over } as never, other as never, { get: () => home } as never);

test("an older kernel or CRIU and another processor are named, and a newer or the same machine has nothing to name", () => {
  expect(lacks(node("other", { kernel: "6.1.0", criu: "3.17.1" }, { cpuModelName: "Atom" }))).toEqual([
    "has kernel 6.1.0, older than 6.8.0-40 of node home",
    "has CRIU 3.17.1, older than 3.19 of node home",
    "has the processor Atom, and node home has Xeon, whose features the memory counts on",
  ]);
  expect(lacks(node("other", { kernel: "6.12.1", criu: "4.0" }))).toBeUndefined();
  expect(lacks(node("other", {}))).toBeUndefined();
});

test("nothing is named where no memory is restored, and of the node that has it", () => {
  const older = { kernel: "5.10", criu: "3.15" };
  expect(lacks(node("other", older), { snapshotId: undefined })).toBeUndefined();
  expect(lacks(node("other", older), { memory: false })).toBeUndefined();
  expect(lacks(node("home", older))).toBeUndefined();
  expect(lacks(node("other", older), { kind: "snapshot", snapshotId: undefined })).toHaveLength(2);
});
