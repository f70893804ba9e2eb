/** A node has started a sandbox, and the database does not take that: the sandbox is neither lost nor twice there. */

import { expect, onTestFinished, test } from "vitest";
import { ID } from "./lifecycle-node.ts";
import { lifecycleWorld, type Operation } from "./lifecycle-world.ts";

const CASES: readonly (readonly [what: string, before: readonly Operation[], work: Operation])[] = [
  ["a resume with memory", ["pause"], "connect"],
  ["a resume from the disk", ["pause disk"], "reboot"],
  ["a rewind of a running sandbox", [], "rewind"],
  ["a rewind of a paused sandbox", ["pause"], "rewind"],
];

async function started(before: readonly Operation[], work: Operation) {
  const w = await lifecycleWorld(() => Promise.resolve());
  onTestFinished(() => w.close());
  for (const operation of before) await w.perform(operation);
  await w.perform("unwritten");
  await expect(w.perform(work)).rejects.toThrow("the database is away");
  expect(w.live.size).toBe(1);
  return w;
}

test.each(CASES)("%s whose end was not recorded is finished by the next request", async (_what, before, work) => {
  const w = await started(before, work);
  const onNode = [...w.live.keys()];
  await w.perform(work);
  const record = await w.store.sandboxes.get(ID);
  expect([record?.state, record?.executionId]).toEqual(["running", onNode[0]]);
  expect([...w.live.keys()]).toEqual(onNode);
  expect(w.routes().lookup(ID)?.executionId).toBe(onNode[0]);
});

test.each(CASES)("%s whose end was not recorded is finished by housekeeping", async (_what, before, work) => {
  const w = await started(before, work);
  const onNode = [...w.live.keys()];
  await w.settle();
  const record = await w.store.sandboxes.get(ID);
  expect([record?.state, record?.executionId]).toEqual(["running", onNode[0]]);
  expect([...w.live.keys()]).toEqual(onNode);
});
