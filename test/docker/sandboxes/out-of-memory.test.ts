/** A sandbox that uses up its memory: the result of the command, the log and the metrics say so. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { ORCHESTRATOR_TOKEN, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { command } from "../../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 90_000, interval: 100 };
const HOG = `python3 -c "x = bytearray(400 << 20)"`;

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
});
afterAll(() => agent.close());

async function killsCounted(): Promise<number> {
  const headers = { authorization: `Bearer ${ORCHESTRATOR_TOKEN}` };
  const text = await (await fetch(`${agent.url}/metrics`, { headers })).text();
  return Number(/^svc_sandbox_oom_kills_total (\d+)$/m.exec(text)?.[1]);
}

test("a command that is killed for memory, and the shell around one, name the reason and the limit", async () => {
  const { address, executionId } = await agent.start();
  expect(await command(address, `exec ${HOG}`)).toMatchObject({
    code: -1,
    error: "signal: killed (out of memory: limit 256 MiB)",
  });
  expect(await command(address, `${HOG}; exit $?`)).toMatchObject({
    code: 137,
    error: "exit status 137 (out of memory: limit 256 MiB)",
  });
  expect(await command(address, "kill -9 $$")).toMatchObject({ code: -1, error: "signal: killed" });
  // The command that goes on after its child was killed has no such result; the log has it.
  const goesOn = await command(address, `${HOG}; true`);
  expect([goesOn.code, goesOn.error]).toEqual([0, undefined]);

  const query = { limit: 100, direction: "forward" as const, level: "error" as const };
  const lines = async () => {
    const entries = await agent.call.executionLogs({ params: { executionId }, query });
    return entries.map(({ level, message }) => `${level} ${message}`);
  };
  await expect
    .poll(lines, SLOW)
    .toEqual(Array.from({ length: 3 }, () => "error the kernel killed a process: out of memory: limit 256 MiB"));
  await expect.poll(killsCounted, SLOW).toBe(3);
  await agent.stop(executionId);
}, 240_000);

test("a sandbox whose own first program is killed for memory ends with that reason", async () => {
  const { address, executionId } = await agent.start();
  // The kernel chooses the process with the highest score: root inside makes envd that one.
  const script = `for e in /proc/[0-9]*/exe; do case $(readlink $e) in */node|*/loader) echo 1000 > \${e%exe}oom_score_adj;; esac; done; ${HOG}`;
  command(address, script, { user: "root" }).catch(() => undefined);
  await expect
    .poll(() => agent.exits.find((exit) => exit.executionId === executionId), SLOW)
    .toMatchObject({ reason: "out_of_memory", exitCode: 137, detail: "limit 256 MiB" });
  const query = { limit: 1, direction: "backward" as const };
  const last = async () => (await agent.call.executionLogs({ params: { executionId }, query }))[0];
  await expect
    .poll(last, SLOW)
    .toMatchObject({ level: "error", message: "the sandbox ended, out of memory: limit 256 MiB" });
}, 240_000);
