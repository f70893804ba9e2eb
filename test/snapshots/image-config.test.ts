/**
 * Images that declare `VOLUME` or `HEALTHCHECK`, as those of databases do. What is below a volume is in the sandbox's layer like
 * the rest, so builds, snapshots and copies have it: Docker would keep it in a volume of each container. No health check runs.
 */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { buildsOn, run } from "../support/agent/agent-builds.ts";
import { NODE_ID, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { run as execute } from "../support/platform/programs.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const docker = (...args: string[]) => execute("docker", args);
const IMAGE = `svc/test-with-volumes:${randomUUID().slice(0, 8)}`;

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_BUILD_LOCAL_IMAGES: "*" });
  const container = IMAGE.replaceAll(/\W/g, "-");
  const make = "mkdir -m 1777 /data && echo of-the-image > /data/image";
  await docker("run", "--name", container, "--network=none", "svc/test-busybox", "/bin/sh", "-c", make);
  // The image has one of these directories.
  const volumes = 'VOLUME ["/data", "/odd name", "/not/there"]';
  const check = "HEALTHCHECK --interval=1s CMD touch /data/checked";
  // The image has one of these directories.
  const foreign = "LABEL svc.image=made";
  await docker("commit", "--change", volumes, "--change", check, "--change", foreign, container, IMAGE);
  await docker("rm", container);
});
afterAll(async () => {
  await docker("rmi", "-f", IMAGE);
  await agent.close();
});

const { built, sandboxOf } = buildsOn(() => agent);
const shell = async ({ address }: Started, text: string) => {
  const { output, code } = await command(address, text, { user: "root" });
  expect(code, output).toBe(0);
  return output.trim();
};

test("files below a volume of the image are the sandbox's: builds, pauses, snapshots and forks keep them", async () => {
  const done = await built(IMAGE, [run("cat /data/image && echo of-the-build > /data/build", "root")]);
  const one = await sandboxOf(done);
  expect(await shell(one, "cat /data/image /data/build")).toBe("of-the-image\nof-the-build");
  expect(await shell(one, "stat -c %a /data && ls -d /not/there '/odd name'")).toBe("1777\n/not/there\n/odd name");
  // One file system: its limit holds below the path too.
  expect(await shell(one, "grep -c -e ' /data ' -e ' /not/there ' -e _data /proc/self/mountinfo || true")).toBe("0");
  expect(await shell(one, "stat -c %d / /data | uniq | wc -l")).toBe("1");
  // A program that has a file of it open.
  await background(one.address, "cd /data && exec 3>open && echo held >&3 && exec sleep 1000", { user: "root" });
  await shell(one, "echo own > /data/own && echo other > /not/there/other");
  const all =
    "cat /data/image /data/build /data/own /not/there/other; for p in $(pidof sleep); do readlink /proc/$p/fd/3; done";
  const kept = "of-the-image\nof-the-build\nown\nother\n/data/open";
  expect(await shell(one, all)).toBe(kept);

  const paused = { snapshotId: randomUUID(), memory: true };
  await agent.call.pauseExecution({ params: { executionId: one.executionId }, body: paused });
  await agent.drop();
  const build = { templateId: "t1", buildId: done.buildId, image: done.state.result?.image ?? "" };
  const again = await agent.start({
    sandboxId: one.sandboxId,
    build,
    origin: { is: "paused", snapshotId: paused.snapshotId, memory: true },
  });
  expect(again.restored).toBe("memory");
  expect(await shell(again, all)).toBe(kept);

  const snapshot = { snapshotId: randomUUID(), memory: true };
  await agent.call.checkpointExecution({ params: { executionId: again.executionId }, body: snapshot });
  onTestFinished(() => agent.call.deleteSnapshot({ params: { snapshotId: snapshot.snapshotId } }));
  const copy = await agent.start({ build, origin: { is: "snapshot", snapshotId: snapshot.snapshotId, memory: true } });
  expect(await shell(copy, all)).toBe(kept);
  await agent.stop(copy.executionId);
  const cold = await agent.start({ build, origin: { is: "snapshot", snapshotId: snapshot.snapshotId, memory: false } });
  expect(await shell(cold, "cat /data/own /not/there/other")).toBe("own\nother");
  await agent.stop(cold.executionId);
  await agent.stop(again.executionId);
});

test("the health check of an image runs in no container", async () => {
  expect(await docker("inspect", "--format", "{{json .Config.Healthcheck.Test}}", IMAGE)).toContain("/data/checked");
  const one = await sandboxOf(await built(IMAGE, [run("true")]));
  // The container of the build may end between the two commands.
  const health = async () => {
    const ids = (await docker("ps", "--quiet", "--filter", `label=svc.node=${NODE_ID}`)).trim().split("\n");
    const said = await docker("inspect", "--format", "{{json .State.Health}}", ...ids);
    return [...new Set(said.trim().split("\n"))];
  };
  await expect.poll(health).toEqual(["null"]);
  await agent.stop(one.executionId);
});
