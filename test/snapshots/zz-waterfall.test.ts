import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, test } from "vitest";
import { type RealAgent, realAgent, RESOURCES } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const OUT = "/tmp/shells-waterfall.log";
const say = (text: string) => appendFileSync(OUT, `${text}\n`);
let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "0", ...(process.env["WF_SHELLS"] ? { SVC_SHELLS: process.env["WF_SHELLS"] } : {}) });
});
afterAll(() => agent.close());
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const sizes = (process.env["WF_SIZES"] ?? "16,512").split(",").map(Number);
test.each(sizes)("%i MB", { timeout: 300_000 }, async (mb) => {
  const resources = { ...RESOURCES, memoryMB: mb + 256 };
  const one = await agent.start({ resources });
  await background(one.address, `exec python3 -c 'import os,time; x=os.urandom(${mb}<<20); open("/tmp/held","w"); time.sleep(1000)'`);
  for (;;) {
    if ((await command(one.address, "ls /tmp/held")).code === 0) break;
    await wait(100);
  }
  for (const count of [1, 1, 1, 10, 10, 1]) {
    const begun = performance.now();
    const body = { snapshotId: randomUUID(), memory: true, durable: false };
    const { snapshotId } = await agent.call.checkpointExecution({ params: { executionId: one.executionId }, body });
    const taken = performance.now();
    const each: number[] = [];
    const copies = await Promise.all(
      Array.from({ length: count }, async () => {
        for (;;) {
          try {
            const copy = await agent.start({ resources, origin: { is: "snapshot", snapshotId, memory: true } });
            each.push(Math.round(performance.now() - taken));
            return copy;
          } catch (error) {
            if (!/busy|turn/.test(String(error))) throw error;
            await wait(20);
          }
        }
      }),
    );
    const all = performance.now() - begun;
    const times = copies.map(({ times }) => Object.entries(times ?? {}).map(([name, ms]) => `${name} ${ms.toFixed(0)}`).join(" "));
    say(`${mb} MB x${count}: all ${all.toFixed(0)} checkpoint ${(taken - begun).toFixed(0)} copies ${each.join(",")}`);
    say(`   first: ${times[0]} | last: ${times.at(-1)}`);
    await Promise.all(copies.map(({ executionId }) => agent.stop(executionId)));
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await wait(count === 10 ? 12_000 : 4_000);
  }
  for (let round = 0; round < 3; round++) {
    const body = { snapshotId: randomUUID(), memory: true };
    const holder = await agent.start({ resources });
    const begun = performance.now();
    const { snapshotId } = await agent.call.pauseExecution({ params: { executionId: holder.executionId }, body });
    const paused = performance.now();
    await wait(1500);
    const resuming = performance.now();
    const again = await agent.start({ resources, sandboxId: holder.sandboxId, origin: { is: "paused", snapshotId, memory: true } });
    say(`pause ${(paused - begun).toFixed(0)} durable resume ${(performance.now() - resuming).toFixed(0)} ${JSON.stringify(again.times)}`);
    await agent.stop(again.executionId);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
  }
  await agent.stop(one.executionId);
});
