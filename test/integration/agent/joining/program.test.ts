/** `agent --join` as an operator runs it: it joins, or says in one sentence what is wrong and what to do. */

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { keptBy, newJoinToken, newMachine } from "../../../support/cluster/members.ts";

const ROOT = new URL("../../../..", import.meta.url).pathname;
/** A clock that is ten minutes ahead. */
const WRONG_CLOCK = "data:text/javascript,const right = Date.now; Date.now = () => right() + 600000;";

let cluster: Cluster;
let other: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ agents: 0, config: { nodesPort: 0 } });
  other = await startCluster({ agents: 0, config: { nodesPort: 0 } });
});
afterAll(() => Promise.all([cluster.stop(), other.stop()]));

interface Run {
  readonly orchestratorUrl?: string;
  readonly imports?: readonly string[];
}

async function join(token: string, { orchestratorUrl, imports = [] }: Run = {}) {
  const machine = await newMachine(cluster, orchestratorUrl === undefined ? {} : { orchestratorUrl });
  const options = ["tsx", ...imports].flatMap((name) => ["--import", name]);
  const child = spawn(process.execPath, [...options, "agent/main.ts", "--join", token], {
    cwd: ROOT,
    env: {
      PATH: process.env["PATH"],
      SVC_STATE_DIR: machine.stateDir,
      SVC_ORCHESTRATOR_URL: machine.orchestratorUrl,
      SVC_NODE_ID: machine.nodeId,
    },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => void child.once("exit", resolve));
  const [status, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { machine, status, stdout, stderr };
}

test("a machine with a token has joined when the command ends, and the token is in no file", async () => {
  const token = await newJoinToken(cluster);
  const { machine, status, stdout, stderr } = await join(token);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain(`this machine has joined the platform as node '${machine.nodeId}'`);
  expect(JSON.stringify(keptBy(machine))).not.toContain(token.split(".").at(-1));
});

describe("each mistake ends with status 2 and one sentence that names the cure:", () => {
  async function mistake(token: string, run: Run = {}): Promise<string> {
    const { machine, status, stdout, stderr } = await join(token, run);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(() => keptBy(machine)).toThrow("nothing is kept");
    return stderr;
  }

  test("a wrong token", async () => {
    expect(await mistake("svcjoin1.abc")).toContain(
      "the join token is cut off or changed, it has 12 characters of 119: copy the whole text",
    );
    const token = await newJoinToken(cluster);
    expect(await mistake(`${token.slice(0, -4)}xxxx`)).toContain(
      "the platform does not know this join token: make one with POST /admin/join-tokens",
    );
  });

  test("a used token", async () => {
    const token = await newJoinToken(cluster);
    expect((await join(token)).status).toBe(0);
    expect(await mistake(token)).toMatch(/was used at .*, and is valid once: make another one/);
  });

  test("a token of another platform", async () => {
    expect(await mistake(await newJoinToken(other))).toMatch(
      /the token is of another platform, .* Nothing of the token was sent; check the address, or make a token on that platform/,
    );
  });

  test("a closed port", async () => {
    const said = await mistake(await newJoinToken(cluster), { orchestratorUrl: "https://127.0.0.1:1" });
    expect(said).toContain("the platform was not reached: nothing listens at https://127.0.0.1:1");
    expect(said).toContain("SVC_NODES_PORT");
  });

  test("a wrong clock", async () => {
    const token = await newJoinToken(cluster);
    expect(await mistake(token, { imports: [WRONG_CLOCK] })).toMatch(
      /which is [56]\d\d s ahead of the orchestrator's: set it \(timedatectl set-ntp true\), then join with the same token/,
    );
    expect((await join(token)).status).toBe(0);
  });
});
