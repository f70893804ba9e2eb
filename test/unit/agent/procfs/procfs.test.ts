/** When the files are served, served again and given up, on a machine in memory. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { RunCommand } from "../../../../agent/host/command.ts";
import { hostProcfs, SERVED } from "../../../../agent/procfs/procfs.ts";
import { createLog } from "../../../../shared/program/log.ts";

async function machine() {
  const directory = await mkdtemp(join(tmpdir(), "svc-sizes-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const program = join(directory, "svc-sizes");
  await writeFile(program, "the program");
  const state = {
    calls: [] as string[],
    version: undefined as string | undefined,
    mountable: true,
    warned: [] as string[],
  };
  const run: RunCommand = (name, args) => {
    if (name === "cat") {
      expect(args).toEqual([join(directory, "alive")]);
      return state.version === undefined
        ? Promise.reject(new Error("Transport endpoint is not connected"))
        : Promise.resolve(`${state.version} 1\n`);
    }
    state.calls.push(`${args[0]} ${args.slice(2).join(" ")}`.replace(/ \d{10} /, " USER "));
    if (args[0] === "serve") {
      if (!state.mountable) return Promise.reject(new Error("/dev/fuse: No such file or directory"));
      state.version = args[3];
    }
    return Promise.resolve("");
  };
  const log = createLog({ component: "test", level: "silent" });
  vi.spyOn(log, "warn").mockImplementation(
    (_facts: unknown, message?: string) => void state.warned.push(message ?? ""),
  );
  const sizes = hostProcfs({ run, place: directory, program: () => Promise.resolve(program), log });
  return { state, keep: () => sizes.keep(() => [{ id: "c1", pid: 7 }]) };
}

test("the files are served once, and the containers that run get them", async () => {
  const { state, keep } = await machine();
  expect([await keep(), await keep()]).toEqual([SERVED, SERVED]);
  expect(state.calls).toEqual([expect.stringMatching(/^serve USER [0-9a-f]{12}$/), "rebind 7:c1"]);
});

test("a server that is gone, or of another version, is replaced", async () => {
  const { state, keep } = await machine();
  for (const version of [undefined, "older"]) {
    await keep();
    state.version = version;
  }
  state.calls.length = 0;
  expect(await keep()).toBe(SERVED);
  expect(state.calls.map((call) => call.split(" ")[0])).toEqual(["serve", "rebind"]);
});

test("where the files cannot be served sandboxes start all the same, and one warning and the capabilities say why", async () => {
  const { state, keep } = await machine();
  state.mountable = false;
  const why = "sandboxes see the machine's: /dev/fuse: No such file or directory";
  expect([await keep(), await keep()]).toEqual([why, why]);
  expect(state.warned).toEqual(["sandboxes that start now see the machine's sizes instead of their own"]);
  state.mountable = true;
  expect(await keep()).toBe(SERVED);
});
