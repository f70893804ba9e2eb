/** The agent's handling of Docker containers in cases in which Docker itself would go wrong. */

import { randomUUID } from "node:crypto";
import { mkdtemp, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { dockerContainers } from "../../../agent/containers/docker.ts";
import { flattenWhenDeep } from "../../../agent/node-disk/flatten.ts";
import { findHole } from "../../../agent/node-disk/holes.ts";
import { BASE, NODE_ID, RESOURCES } from "../../support/agent/real-agent.ts";

const ROUNDS = 40;
/** An image that is copied into one layer in a moment. */
const SMALL = { templateId: "small", buildId: "small-build", image: "svc/test-busybox:latest" };

test("a container that is renamed during its removal is gone: Docker does not list it as `removing` for ever", async () => {
  const runtimeDirectory = await mkdtemp(join(tmpdir(), "svc-containers-"));
  onTestFinished(() => rm(runtimeDirectory, { recursive: true }));
  // A failed run leaves containers that stay until the Docker daemon restarts, so each run has a node id of its own.
  const nodeId = `${NODE_ID}-${randomUUID().slice(0, 8)}`;
  const containers = dockerContainers({
    socketPath: "/var/run/docker.sock",
    nodeId,
    runtime: "runc",
    seccomp: "unconfined",
    openFiles: 1024,
    userLimits: {},
  });
  for (let round = 0; round < ROUNDS; round++) {
    const id = await containers.create({
      name: `${nodeId}-${round}`,
      build: BASE,
      resources: RESOURCES,
      command: ["/nothing"],
      env: [],
      runtimeDirectory,
      resolver: "127.0.0.1",
    });
    // A rename that comes after the beginning of the removal finds no container.
    const renamed = (async () => {
      await delay(round % 8);
      await containers.rename(id, `${nodeId}-again-${round}`).catch(() => undefined);
    })();
    await Promise.all([renamed, delay(round % 5).then(() => containers.remove(id))]);
  }
  expect(await containers.list()).toEqual([]);
});

test("an image with a hole in one of its layers is not copied into one layer; without the hole it is copied", async () => {
  const runtimeDirectory = await mkdtemp(join(tmpdir(), "svc-containers-"));
  onTestFinished(() => rm(runtimeDirectory, { recursive: true }));
  const snapshotId = randomUUID();
  const image = `svc/snapshot:${snapshotId}`;
  const nodeId = `${NODE_ID}-${snapshotId.slice(0, 8)}`;
  const containers = dockerContainers({
    socketPath: "/var/run/docker.sock",
    nodeId,
    runtime: "runc",
    seccomp: "unconfined",
    openFiles: 1024,
    userLimits: {},
  });
  const id = await containers.create({
    name: nodeId,
    build: SMALL,
    resources: RESOURCES,
    command: ["/nothing"],
    env: [],
    runtimeDirectory,
    resolver: "127.0.0.1",
  });
  onTestFinished(() => containers.remove(id));
  await containers.commit(id, image, snapshotId);
  onTestFinished(async () => void (await containers.removeImage(image)));
  const before = await containers.layers(image);
  const directories = await containers.layerDirectories(image);
  expect(directories).toHaveLength(before);
  for (const directory of directories) expect((await stat(directory)).isDirectory()).toBe(true);

  const deep = { findHole, containers: { ...containers, layers: () => Promise.resolve(60) } };
  const hole = join(directories[0] ?? "", "hole.img");
  await writeFile(hole, "");
  await truncate(hole, 6 * 1024 ** 3);
  await expect(flattenWhenDeep(image, deep)).rejects.toThrow(/^the file \/hole\.img is sparse: it is 6144 MiB long/);
  expect(await containers.layers(image)).toBe(before);
  await rm(hole);
  await flattenWhenDeep(image, deep);
  expect(await containers.layers(image)).toBe(1);
});
