/** Removals of snapshots that their nodes did not answer. */

import { expect, test } from "vitest";
import { createBackground } from "../../../../orchestrator/base/background.ts";
import { createSnapshotRemover } from "../../../../orchestrator/lifecycle/snapshots/snapshot-removal.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });

test("a removal that a node did not answer is asked again, unless a sandbox of the node needs the snapshot by then", async () => {
  const deleted: string[] = [];
  let answers = false;
  const deleteSnapshot = ({ params }: { readonly params: { readonly snapshotId: string } }) => {
    if (!answers) return Promise.reject(new Error("the node is away"));
    deleted.push(params.snapshotId);
    return Promise.resolve();
  };
  const nodes = { agent: () => ({ deleteSnapshot }), get: () => ({ status: "ready" }) } as unknown as Nodes;
  const background = createBackground(log);
  const neededOn = () => Promise.resolve(new Set(["back"]));
  const remover = createSnapshotRemover({ nodes, background, neededOn, log, timeoutMs: 1_000 });
  await remover.remove("node", "left");
  await remover.remove("node", "back");
  answers = true;
  remover.again();
  await background.settled();
  expect(deleted).toEqual(["left"]);
  remover.again();
  await background.settled();
  expect(deleted).toEqual(["left"]);
});
