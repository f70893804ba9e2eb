/** Measures the time from the create call to the first answer of a template's server, with and without a pool. */

import { setTimeout as wait } from "node:timers/promises";
import { Sandbox, Template, waitForPort } from "e2b";
import { api, type Platform } from "../support/platform/platform.ts";
import { run } from "../support/platform/programs.ts";
import { visit } from "../support/sandbox/pausing.ts";
import { dockerRun } from "./baselines/docker.ts";
import { type Bench, timed, untilPoolHolds } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const PORT = 8000;
const SERVER = `exec python3 -m http.server ${PORT} --directory /usr/share`;
/** This many creates within an hour make a build worth a pool (orchestrator/nodes/pools/pool-targets.ts). */
const POPULAR = 3;
const POLL_MS = 5;

export async function templateStart({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const rounds = quick ? 4 : 20;
  say("building a template with a server in it");
  const name = `bench-${Date.now()}`;
  const template = Template().fromTemplate("base").setStartCmd(SERVER, waitForPort(PORT));
  const { templateId, buildId } = await Template.build(template, name);
  try {
    const cold: number[] = [];
    for (let round = 0; round < POPULAR; round++) cold.push(await oneOf(platform, name));
    // The highest number of starts in any ten seconds decides how large a pool is, so these run together.
    await Promise.all(Array.from({ length: POPULAR }, () => oneOf(platform, name)));
    const pooled: number[] = [];
    const docker: number[] = [];
    for (let round = 0; round < rounds; round++) {
      say(`first response of a template's server: ${round + 1} of ${rounds}`);
      await untilPoolHolds(platform, POPULAR, buildId);
      pooled.push(await oneOf(platform, name));
      // The pool refills first: the baseline must not run beside the refill, which is the platform's work alone.
      await untilPoolHolds(platform, POPULAR, buildId);
      docker.push(await byDocker());
    }
    const baseline = { name: "docker run -d + first answer", ...summarise(docker) };
    const measured = (how: string, samples: readonly number[]) =>
      row({ name: `first response, ${how}`, unit: "ms", ours: summarise(samples), baseline, budgets: [] });
    return [measured("from the pool", pooled), measured("copied at the start", cold)];
  } finally {
    await api(platform, "DELETE", `/templates/${templateId}`);
  }
}

/** Creates a sandbox and sends one request, which must be answered: the platform promises that no second one is needed. */
async function oneOf(platform: Platform, name: string): Promise<number> {
  const made: Sandbox[] = [];
  try {
    return await timed(async () => {
      const sandbox = await Sandbox.create(name, { timeoutMs: 120_000 });
      made.push(sandbox);
      const { status } = await visit(platform, sandbox, { port: PORT, path: "/" });
      if (status !== 200) throw new Error(`the first request to a template's server was answered with ${status}`);
    });
  } finally {
    await Promise.all(made.map((sandbox) => sandbox.kill()));
  }
}

/** Starts the same server in a plain container and repeats the request until the server answers. */
async function byDocker(): Promise<number> {
  let remove = async () => {};
  try {
    return await timed(async () => {
      const container = await dockerRun(["bash", "-l", "-c", SERVER]);
      remove = () => container.remove();
      const format = "{{.NetworkSettings.IPAddress}}";
      const address = (await run("docker", ["inspect", "--format", format, container.name])).trim();
      while (!(await answers(`http://${address}:${PORT}/`))) await wait(POLL_MS);
    });
  } finally {
    await remove();
  }
}

function answers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}
