/** Processes that the kernel killed for memory, as clients see them; the test plays the kernel's counter. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { Signal } from "../../../../shared/envd-rpc/gen/process_pb.js";
import { as, sharedEnvd } from "../running-envd.ts";
import { byPid, sh } from "./commands.ts";
import { inBackground } from "./following.ts";

const { clients, envd } = sharedEnvd();

const state = { kills: 0 };

function count(kills: number): void {
  state.kills = kills;
  const directory = join(envd.root, "sys/fs/cgroup/memory");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "memory.oom_control"), `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`);
  writeFileSync(join(directory, "memory.limit_in_bytes"), String(512 * 1024 * 1024));
}

beforeEach(() => count(state.kills));

const start = (command: string) => inBackground(clients.process.start({ process: sh(command) }, as("user")));

test("a command that the kernel killed for memory names the reason and the limit, and its log line too", async () => {
  const command = await start("exec sleep 100");
  count(state.kills + 1);
  process.kill(command.pid, "SIGKILL");
  expect((await command.done).end).toMatchObject({
    exitCode: -1,
    status: "signal: killed",
    error: "signal: killed (out of memory: limit 512 MiB)",
  });
  const entries = async () => ((await (await fetch(`${envd.url}/logs`)).json()) as { entries: unknown[] }).entries;
  await expect.poll(entries).toContainEqual(
    expect.objectContaining({
      level: "error",
      message: "the kernel killed a process: out of memory: limit 512 MiB",
      fields: { kills: 1 },
    }),
  );
  await expect.poll(entries).toContainEqual(
    expect.objectContaining({
      message: "process ended",
      fields: expect.objectContaining({
        pid: command.pid,
        cmd: expect.stringContaining("exec sleep 100") as unknown,
        error: "signal: killed (out of memory: limit 512 MiB)",
      }) as unknown,
    }),
  );
});

test("a shell reports that its command was killed for memory", async () => {
  const shell = await start("sleep 100 & echo $!; wait $!; exit $?");
  await expect.poll(shell.text).toMatch(/\d+\n/);
  count(state.kills + 1);
  process.kill(Number.parseInt(shell.text(), 10), "SIGKILL");
  expect((await shell.done).end).toMatchObject({
    exitCode: 137,
    error: "exit status 137 (out of memory: limit 512 MiB)",
  });
});

test("a process that the client kills, or that another program kills, was not out of memory", async () => {
  const [killed, other] = [await start("exec sleep 100"), await start("exec sleep 100")];
  process.kill(other.pid, "SIGKILL");
  expect((await other.done).end).toMatchObject({ exitCode: -1, error: "signal: killed" });
  count(state.kills + 1);
  await clients.process.sendSignal({ process: byPid(killed.pid), signal: Signal.SIGKILL });
  expect((await killed.done).end).toMatchObject({ exitCode: -1, error: "signal: killed" });
});
