/**
 * An agent of the test's own for hostile rounds, an image with the hostile program, and a neighbour sandbox that nothing may
 * touch.
 */

import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { promisify } from "node:util";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { NODE_ID, RESOURCES, type RealAgent, realAgent } from "../agent/real-agent.ts";
import { until } from "../runner/until.ts";
import { command } from "../sandbox/envd-commands.ts";
import { addRuntime } from "./engine-runtime.ts";
import { type Disk, type EscapeHost, escapeHost, type Layers } from "./escape-host.ts";

const run = promisify(execFile);
const IMAGE = `svc/test-hostile:${NODE_ID}`;
const AGENT = new URL("escape-agent.ts", import.meta.url);

export interface RoundsHost {
  readonly agent: RealAgent;
  readonly host: EscapeHost;
  readonly image: string;
  /** The process whose root is the host's root, for links through /proc. */
  readonly hostProcess: string;
  close(): Promise<void>;
}

export const hostileBuild = (image: string) => ({ templateId: "hostile", buildId: "hostile", image });

/** Tries the installed runtime when both layers are there, else a copy of it with a layer left out. */
export async function roundsHost(layers: Layers): Promise<RoundsHost> {
  const settings = {
    SVC_BUILD_LOCAL_IMAGES: "*",
    // A pause writes to the disk at once, and its resume reads from there.
    SVC_FROZEN_SECONDS: "0",
    // The agent measures the neighbour's disk only for the first sample.
    SVC_USAGE_EVERY_MS: "3600000",
  };
  const closing: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const one of closing.toReversed()) await one();
  };
  try {
    const disk: { found?: Disk } = {};
    const installed = layers.paths && layers.confined;
    let agent: RealAgent;
    let host: EscapeHost;
    if (installed) {
      agent = await realAgent(settings);
      closing.push(() => agent.close());
      disk.found = await diskOf(agent, await agent.start());
      host = await escapeHost(disk.found);
      closing.push(() => host.close());
    } else {
      // The runtime must exist before the agent that uses it, so the neighbour is a container of Docker's own.
      const neighbour = await plainContainer();
      closing.push(() => run("docker", ["rm", "-f", neighbour.id]));
      host = await escapeHost(neighbour.disk);
      closing.push(() => host.close());
      const path = await host.runtime(layers);
      const runtime = await addRuntime(path);
      closing.push(() => runtime.remove());
      const searched = `${dirname(path)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
      agent = await realAgent({ ...settings, SVC_OCI_RUNTIME: runtime.name, SVC_TEST_CRIU_PATH: searched }, AGENT);
      closing.push(() => agent.close());
    }
    await makeImage(host.hostile);
    closing.push(() => run("docker", ["rmi", "-f", IMAGE]));
    agent.setPools([{ build: hostileBuild(IMAGE), resources: RESOURCES, size: 2 }]);
    // Without path resolution CRIU follows a link through another process, because its confinement needs /proc.
    const hostProcess = process.env["SVC_ESCAPE_PROCESS"] ?? (layers.paths ? String(process.pid) : "self");
    return { agent, host, image: IMAGE, hostProcess, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function makeImage(program: string): Promise<void> {
  const name = IMAGE.replaceAll(/\W/g, "-");
  await run("docker", ["rm", "-f", name]);
  await run("docker", ["create", "--name", name, "--network", "none", "svc/base:latest", "/bin/true"]);
  try {
    await run("docker", ["cp", program, `${name}:/hostile`]);
    await run("docker", ["commit", name, IMAGE]);
  } finally {
    await run("docker", ["rm", "-f", name]);
  }
}

async function diskOf(agent: RealAgent, { executionId, sandboxId, address }: Started): Promise<Disk> {
  await command(address, "true", { user: "root" });
  const sampled = async () => {
    const samples = await agent.call.latestMetrics({ body: { executionIds: [executionId] } });
    return samples[executionId] !== undefined;
  };
  await until(sampled, { what: "the first sample of the sandbox beside the hostile ones", timeoutMs: 120_000 });
  return layersOf(`svc-${sandboxId}`);
}

async function plainContainer(): Promise<{ readonly id: string; readonly disk: Disk }> {
  const program = ["--entrypoint", "/bin/sleep", "svc/base:latest", "infinity"];
  const { stdout } = await run("docker", ["run", "-d", "--network", "none", "--rm", ...program]);
  return { id: stdout.trim(), disk: await layersOf(stdout.trim()) };
}

async function layersOf(container: string): Promise<Disk> {
  const { stdout } = await run("docker", ["inspect", "-f", "{{json .GraphDriver.Data}}", container]);
  const { UpperDir: upper, MergedDir: merged } = JSON.parse(stdout) as { UpperDir: string; MergedDir: string };
  return { upper, merged };
}
