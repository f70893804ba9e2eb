/** The agent on the real Docker daemon: it starts, claims and ends sandboxes, and is killed at the worst moment. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newSandboxId } from "../../../shared/ids.ts";
import { CLOSED } from "../../../shared/policy/egress-policy.ts";
import { builtAgent } from "../../support/agent/built-agent.ts";
import {
  BASE,
  containers,
  inside,
  NETWORK,
  RESOURCES,
  type RealAgent,
  realAgent,
} from "../../support/agent/real-agent.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 100 };

/** Lists the links of sandboxes in a set. The agent's own probe has one for a moment, at any time. */
async function setElements(set: string): Promise<string[]> {
  const { stdout } = await run("nft", ["list", "set", "inet", NETWORK, set]);
  const links = [...stdout.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? "");
  return links.filter((link) => link !== `${NETWORK}-probe`);
}

async function health(address: string, limitMs = 20_000): Promise<number> {
  const response = await fetch(`http://${address}:49983/health`, { signal: AbortSignal.timeout(limitMs) });
  return response.status;
}

describe("without a pool", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent();
  });
  afterAll(() => agent.close());

  test("a cold start answers, and a stop leaves nothing of it", async () => {
    const started = await agent.start();
    expect(started.warm).toBe(false);
    expect(await health(started.address)).toBe(204);
    expect(await setElements("open")).toHaveLength(1);
    await agent.stop(started.executionId);
    await expect(health(started.address, 2_000)).rejects.toThrow();
    expect(await setElements("open")).toHaveLength(0);
    await expect.poll(containers, SLOW).toEqual([]);
    await agent.stop(started.executionId);
  });

  test("starting the same execution again gives the same answer", async () => {
    const executionId = randomUUID();
    const body = { sandboxId: newSandboxId(), egress: CLOSED, endAt: Date.now() + 600_000 };
    const [first, second] = await Promise.all([agent.startAs(executionId, body), agent.startAs(executionId, body)]);
    expect(second).toEqual(first);
    expect(await setElements("open")).toHaveLength(1);
    await agent.stop(executionId);
    await expect(agent.startAs(executionId, body)).rejects.toMatchObject({ code: "conflict" });
  });

  test("a stop of a sandbox during its start wins", async () => {
    const stopped = async () => {
      const executionId = randomUUID();
      const starting = agent.startAs(executionId).then(
        () => "started",
        (error: { code?: string }) => error.code,
      );
      // The test looks often: on a quiet machine the start ends a tenth of a second after the container appears.
      await expect.poll(containers, { ...SLOW, interval: 2 }).toHaveLength(1);
      await agent.stop(executionId);
      const answer = await starting;
      await expect.poll(containers, SLOW).toEqual([]);
      return answer;
    };
    // On a busy machine the start may end before this process asks for the stop: then the next one is tried.
    let answer = await stopped();
    for (let tries = 1; tries < 6 && answer === "started"; tries++) answer = await stopped();
    expect(answer).toBe("conflict");
  });

  test("a start from an image that the node does not have is refused in words", async () => {
    const build = { ...BASE, image: "svc/there-is-no-such-image:latest" };
    await expect(agent.start({ build })).rejects.toMatchObject({ code: "template_not_found" });
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test("calls without the token of the orchestrator are refused", async () => {
    const response = await fetch(`${agent.url}/v1/executions/${randomUUID()}`, { method: "DELETE" });
    expect(response.status).toBe(401);
  });

  test("metrics of a sandbox are plausible: the first sample comes soon, and work shows", async () => {
    const { executionId, sandboxId } = await agent.start();
    await expect
      .poll(async () => (await agent.call.executionMetrics({ params: { executionId } }))[0], SLOW)
      .toMatchObject({ cpuCount: 1, memTotal: 256 * 1024 * 1024, diskTotal: 1024 * 1024 * 1024 });
    const work = "head -c 30000000 /dev/zero > /root/file; until [ -e /root/seen ]; do :; done";
    const working = inside(sandboxId, "root", "timeout", "50", "sh", "-c", work);
    const most = async () => {
      const samples = await agent.call.executionMetrics({ params: { executionId } });
      return Math.max(...samples.map(({ cpuUsedPct }) => cpuUsedPct));
    };
    await expect.poll(most, { ...SLOW, timeout: 45_000 }).toBeGreaterThan(20);
    await inside(sandboxId, "root", "touch", "/root/seen");
    await working;
    expect(await most()).toBeLessThanOrEqual(100);
    await expect
      .poll(
        async () => (await agent.call.latestMetrics({ body: { executionIds: [executionId] } }))[executionId]?.diskUsed,
        SLOW,
      )
      .toBeGreaterThan(29_000_000);
    const latest = (await agent.call.latestMetrics({ body: { executionIds: [executionId, randomUUID()] } }))[
      executionId
    ];
    expect(latest?.memUsed).toBeGreaterThan(1_000_000);
    await agent.stop(executionId);
    const after = await agent.call.executionMetrics({ params: { executionId } });
    expect(after.length).toBeGreaterThan(0);
  });

  test("a sandbox whose first process exits is reported at once, with its exit code, and removed", async () => {
    const { executionId, sandboxId } = await agent.start();
    const { stdout } = await run("docker", ["inspect", "-f", "{{.State.Pid}}", `svc-${sandboxId}`]);
    process.kill(Number(stdout), "SIGKILL");
    await expect
      .poll(() => agent.exits.find((exit) => exit.executionId === executionId), SLOW)
      .toMatchObject({ sandboxId, reason: "exited", exitCode: 137 });
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test("a container removed behind the agent's back is reported", async () => {
    const { executionId, sandboxId } = await agent.start();
    await run("docker", ["rm", "-f", `svc-${sandboxId}`]);
    await expect.poll(() => agent.exits.find((exit) => exit.executionId === executionId), SLOW).toBeDefined();
    await expect.poll(() => setElements("open"), SLOW).toEqual([]);
  });

  test("a flushed firewall is restored, and open sandboxes are open again", async () => {
    const { executionId } = await agent.start();
    const before = await setElements("open");
    await run("nft", ["delete", "table", "inet", NETWORK]);
    await expect.poll(() => setElements("open").catch(() => []), SLOW).toEqual(before);
    const { stdout } = await run("nft", ["list", "chain", "inet", NETWORK, "out"]);
    expect(stdout).toContain("drop");
    await agent.stop(executionId);
  });
});

describe("with a pool", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent();
    agent.setPools([{ build: BASE, resources: RESOURCES, size: 3 }]);
  });
  afterAll(() => agent.close());

  test("creates get warm containers, never the same one, and the pool is refilled", async () => {
    await expect.poll(() => agent.heartbeats.at(-1)?.load.pools[0]?.ready, SLOW).toBe(3);
    const started = await Promise.all([agent.start(), agent.start(), agent.start()]);
    expect(started.map(({ warm }) => warm)).toEqual([true, true, true]);
    expect(new Set(started.map(({ address }) => address)).size).toBe(3);
    for (const { sandboxId } of started) await inside(sandboxId, "root", "touch", "/used");
    await Promise.all(started.map(({ executionId }) => agent.stop(executionId)));
    await expect.poll(() => agent.heartbeats.at(-1)?.load.pools[0]?.ready, SLOW).toBe(3);
    const next = await agent.start();
    expect((await inside(next.sandboxId, "root", "ls", "/used")).code).not.toBe(0);
    await agent.stop(next.executionId);
  });

  test("after kill -9 of the agent the same sandboxes answer, the pool is kept, and nothing is orphaned", async () => {
    await expect.poll(() => agent.heartbeats.at(-1)?.load.pools[0]?.ready, SLOW).toBe(3);
    const [open, closed] = await Promise.all([agent.start(), agent.start({ egress: CLOSED })]);
    await inside(open.sandboxId, "root", "sh", "-c", "echo kept > /tmp/mine");
    const elements = await setElements("open");
    expect(elements).toHaveLength(2);
    await agent.crash();
    expect(await health(open.address)).toBe(204);
    await agent.launch();
    expect(await health(open.address)).toBe(204);
    expect(await health(closed.address)).toBe(204);
    expect((await inside(open.sandboxId, "root", "cat", "/tmp/mine")).output.trim()).toBe("kept");
    expect(await setElements("open")).toEqual(elements);
    const executions = () =>
      agent.heartbeats
        .at(-1)
        ?.executions.map(({ sandboxId }) => sandboxId)
        .sort();
    await expect.poll(executions, SLOW).toEqual([open.sandboxId, closed.sandboxId].sort());
    await Promise.all([agent.stop(open.executionId), agent.stop(closed.executionId)]);
    await expect
      .poll(containers, SLOW)
      .toSatisfy((all: { name: string }[]) => all.every(({ name }) => name.startsWith("svc-pool-")));
    const owned = async () => {
      const names = (await readdir("/run/netns")).filter((name) => new RegExp(`^${NETWORK}-\\d+$`).test(name));
      const pinned = new Set(await setElements("pinned"));
      return names.filter((name) => !pinned.has(name));
    };
    await expect.poll(owned, SLOW).toEqual([]);
  });

  test("a container that died while the agent was away is reported when it is back", async () => {
    const { executionId, sandboxId } = await agent.start();
    await inside(sandboxId, "root", "true");
    await agent.crash();
    await run("docker", ["kill", `svc-${sandboxId}`]);
    await agent.launch();
    await expect
      .poll(() => agent.exits.find((exit) => exit.executionId === executionId), SLOW)
      .toMatchObject({ reason: "exited", exitCode: 137 });
  });

  test("a second agent on the same state is refused", async () => {
    const environment = await readFile(`/proc/${agent.pid}/environ`, "utf8");
    const env = Object.fromEntries(environment.split("\0").map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
    const second = run(process.execPath, [builtAgent()], { env: { ...env, SVC_AGENT_PORT: "0" } });
    await expect(second).rejects.toMatchObject({ code: 1 });
  });
});

describe("while the orchestrator is away", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent({ SVC_END_GRACE_MS: "1500" });
  });
  afterAll(() => agent.close());

  test("a sandbox is ended by the agent after its end and the grace, and that is reported later", async () => {
    agent.setOrchestrator(false);
    const { executionId, address } = await agent.start();
    expect(await health(address)).toBe(204);
    // Only now, because the start and the look may take longer than this end and the grace together.
    await agent.call.updateExecution({ params: { executionId }, body: { endAt: Date.now() + 500 } });
    await expect.poll(containers, SLOW).toEqual([]);
    expect(agent.exits).toEqual([]);
    agent.setOrchestrator(true);
    await expect
      .poll(() => agent.exits.find((exit) => exit.executionId === executionId), SLOW)
      .toMatchObject({ reason: "expired" });
  });
});
