/**
 * What Docker's prunes and removals do to sandboxes: each is harmless, or the next start says what is missing. Only objects
 * with this agent's label are pruned, because other programs use the same Docker daemon.
 */

import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { BASE, containers, inside, NODE_ID, type RealAgent, realAgent } from "../support/agent/real-agent.ts";

const run = promisify(execFile);
const SLOW = { timeout: 60_000, interval: 100 };
const OURS = ["--force", "--filter", `label=svc.node=${NODE_ID}`];
/** Small, so that it can be saved and loaded. */
const SMALL = "svc/test-busybox:latest";
const BELOW = `svc/disk-${createHash("sha256").update(NODE_ID).digest("hex").slice(0, 8)}`;

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
});
afterAll(() => agent.close());

const docker = async (...args: string[]) => (await run("docker", args)).stdout.trim();
const names = (repository: string) => docker("images", "--format", "{{.Tag}}", repository);

/** An image of this agent, as a template's. */
async function template(): Promise<string> {
  const image = `svc/test-prune:${randomUUID()}`;
  const container = await docker("create", SMALL, "/none");
  try {
    await docker(
      "commit",
      "--change",
      `LABEL svc.node=${NODE_ID}`,
      "--change",
      `LABEL svc.test=${image}`,
      container,
      image,
    );
  } finally {
    await docker("rm", container);
  }
  onTestFinished(async () => void (await docker("rmi", "--force", image).catch(() => undefined)));
  return image;
}

const start = (image: string) => agent.start({ build: { ...BASE, image } });
const write = ({ sandboxId }: Started, text: string) => inside(sandboxId, "root", "sh", "-c", `echo ${text} >> /file`);
const read = async ({ sandboxId }: Started) => (await inside(sandboxId, "root", "cat", "/file")).output.trim();
const resume = ({ sandboxId }: Started, snapshotId: string, image: string, memory = true) =>
  agent.start({ sandboxId, build: { ...BASE, image }, origin: { is: "paused", snapshotId, memory } });

async function pause({ executionId }: Started): Promise<string> {
  const body = { snapshotId: randomUUID(), memory: true };
  await agent.call.pauseExecution({ params: { executionId }, body });
  // The agent gives the name after its answer.
  await expect.poll(() => names(BELOW), SLOW).toContain(body.snapshotId);
  return body.snapshotId;
}

async function ended({ executionId }: Started): Promise<void> {
  await agent.stop(executionId);
  await expect.poll(containers, SLOW).toEqual([]);
}

test("docker system prune leaves the image of a paused sandbox whose template was built again", async () => {
  const image = await template();
  const first = await start(image);
  await write(first, "kept");
  const snapshotId = await pause(first);
  await agent.drop();
  // The new build takes the name.
  await docker("tag", SMALL, image);
  await docker("system", "prune", ...OURS);
  expect(await containers()).toEqual([]);
  const second = await resume(first, snapshotId, image);
  expect(second.restored).toBe("memory");
  expect(await read(second)).toBe("kept");
  await ended(second);
});

test("docker system prune -a takes the image, the resume says so, and it works when the image is loaded again", async () => {
  const image = await template();
  const directory = await mkdtemp(join(tmpdir(), "svc-prune-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const archive = join(directory, "image.tar");
  await docker("save", "--output", archive, image);
  const first = await start(image);
  await write(first, "kept");
  const snapshotId = await pause(first);
  await agent.drop();
  await docker("system", "prune", "--all", ...OURS);
  expect(await names("svc/test-prune")).toBe("");
  for (const memory of [true, false]) {
    await expect(resume(first, snapshotId, image, memory)).rejects.toMatchObject({
      code: "no_compatible_node",
      message: expect.stringMatching(/image svc.test-prune:.* \(sha256:[0-9a-f]{64}\).*docker load/) as string,
    });
  }
  await expect(start(image)).rejects.toMatchObject({ code: "template_not_found" });
  expect((await readdir(agent.disks)).filter((name) => name.endsWith(".img"))).toHaveLength(1);
  await docker("load", "--input", archive);
  const second = await resume(first, snapshotId, image);
  expect(second.restored).toBe("memory");
  expect(await read(second)).toBe("kept");
  await ended(second);
});

test("the image of a template that is removed by force takes nothing from its paused sandbox", async () => {
  const image = await template();
  const first = await start(image);
  await write(first, "kept");
  const snapshotId = await pause(first);
  await agent.drop();
  await docker("rmi", "--force", image);
  const second = await resume(first, snapshotId, image);
  expect(second.restored).toBe("memory");
  expect(await read(second)).toBe("kept");
  await expect(start(image)).rejects.toMatchObject({ code: "template_not_found" });
  await ended(second);
});

test("a paused sandbox whose disk image is not there stays paused and says so", async () => {
  const image = await template();
  const first = await start(image);
  const snapshotId = await pause(first);
  await agent.drop();
  await docker("container", "prune", ...OURS);
  const [name = ""] = (await readdir(agent.disks)).filter((one) => one.endsWith(".img"));
  const id = name.slice(0, -".img".length);
  await run("umount", [join(agent.disks, id)]).catch(() => undefined);
  await run("mv", [join(agent.disks, name), join(agent.disks, `${name}.away`)]);
  await expect(resume(first, snapshotId, image)).rejects.toMatchObject({
    code: "no_compatible_node",
    message: expect.stringContaining("SVC_DISKS_DIR") as string,
  });
  await run("mv", [join(agent.disks, `${name}.away`), join(agent.disks, name)]);
  const second = await resume(first, snapshotId, image);
  expect(second.restored).toBe("memory");
  await ended(second);
});

test("sandboxes use no volume and no network of Docker, so pruning these changes nothing for them", async () => {
  const image = await template();
  const first = await start(image);
  await write(first, "kept");
  const facts = JSON.parse(await docker("inspect", `svc-${first.sandboxId}`)) as [
    { Mounts: { Type: string }[]; NetworkSettings: { Networks: object } },
  ];
  expect(new Set(facts[0].Mounts.map(({ Type }) => Type))).toEqual(new Set(["bind"]));
  expect(Object.keys(facts[0].NetworkSettings.Networks)).toEqual(["none"]);
  await docker("volume", "prune", ...OURS);
  await docker("network", "prune", ...OURS);
  expect(await read(first)).toBe("kept");
  const snapshotId = await pause(first);
  await agent.drop();
  await docker("volume", "prune", ...OURS);
  await docker("network", "prune", ...OURS);
  const second = await resume(first, snapshotId, image);
  expect(second.restored).toBe("memory");
  expect(await read(second)).toBe("kept");
  await ended(second);
});
