/** What the doctor learns from the orchestrator of this machine. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readInstance } from "../../../machine/base/instance.ts";
import { thisMachine } from "../../../machine/base/this-machine.ts";
import { askPlatform } from "../../../machine/evidence/platform.ts";
import { recordProblems } from "../../../machine/invariants/invariants.ts";
import { ADMIN_TOKEN, startCluster } from "../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../support/cluster/sandboxes.ts";

/** More than one page. */
const COUNT = 130;

test("the doctor knows every sandbox of a node that has more than a page of them, each once", async () => {
  const root = await mkdtemp(join(tmpdir(), "svc-platform-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const cluster = await startCluster({ config: { rateLimitCreatePerSecond: 10_000 } });
  onTestFinished(() => cluster.stop());
  const { create } = sandboxesOn(() => cluster);
  const made: string[] = [];
  for (let left = COUNT; left > 0; left -= 10) {
    const some = await Promise.all(Array.from({ length: 10 }, () => create({ timeout: 3_000 })));
    made.push(...some.map(({ sandboxID }) => sandboxID));
  }
  const config = join(root, "etc/svc");
  await mkdir(config, { recursive: true });
  await writeFile(join(config, "admin-token"), ADMIN_TOKEN);
  await writeFile(join(config, "orchestrator.env"), `SVC_API_PORT=${new URL(cluster.url).port}\n`);
  await writeFile(join(config, "agent.env"), `SVC_NODE_ID=${cluster.agent.nodeId}\n`);

  const seen = await askPlatform(thisMachine(readInstance("", root)));
  expect(seen?.records?.running.map(({ sandboxID }) => sandboxID).toSorted()).toEqual(made.toSorted());
  const containers = [...cluster.agent.live.values()].map(({ body }) => ({
    name: `svc-${body.sandboxId}`,
    state: "running",
  }));
  expect(recordProblems(seen?.records ?? ({} as never), containers, Date.now())).toEqual([]);
}, 120_000);
