import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cutFile, watchOwnFiles } from "../../../../agent/node-disk/own-files.ts";
import { createLog } from "../../../../shared/program/log.ts";

const MIB = 1024 ** 2;
const log = createLog({ component: "test", level: "silent" });
let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-own-files-"));
  path = join(directory, "hosts");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test("an ordinary file stays as it is, and a missing file is no error", async () => {
  await writeFile(path, "127.0.0.1 localhost\n");
  expect(await cutFile(path)).toBe("small");
  expect(await readFile(path, "utf8")).toBe("127.0.0.1 localhost\n");
  expect(await cutFile(join(directory, "none"))).toBe("small");
});

test("a large file is cut and keeps its beginning, also when it is only a hole", async () => {
  await writeFile(path, `127.0.0.1 localhost\n${"x".repeat(3 * MIB)}`);
  expect(await cutFile(path)).toBe("cut");
  expect((await stat(path)).size).toBe(MIB);
  expect((await readFile(path, "utf8")).startsWith("127.0.0.1 localhost\n")).toBe(true);
  await truncate(path, 6_000 * MIB);
  expect(await cutFile(path)).toBe("cut");
  expect(await cutFile(path)).toBe("small");
});

test("a link in the file's place is not followed", async () => {
  const other = join(directory, "other");
  await writeFile(other, Buffer.alloc(3 * MIB));
  await symlink(other, path);
  expect(await cutFile(path)).toBe("small");
  expect((await stat(other)).size).toBe(3 * MIB);
});

test("a pipe in the file's place does not block the round", async () => {
  await promisify(execFile)("mkfifo", [path]);
  expect(await cutFile(path)).toBe("small");
});

test("a lease on the file does not block the round, and the file is cut afterwards", async () => {
  await writeFile(path, Buffer.alloc(3 * MIB));
  const holder = spawn("python3", [
    "-c",
    `import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("leased", flush=True)
time.sleep(60)`,
    path,
  ]);
  await once(holder.stdout, "data");
  expect(await cutFile(path)).toBe("busy");
  const over = once(holder, "exit");
  holder.kill("SIGKILL");
  await over;
  expect(await cutFile(path)).toBe("cut");
});

test("every running container is looked at", async () => {
  const ids = Array.from({ length: 3 }, (_, index) => `c${index}`);
  for (const id of ids) {
    await mkdir(join(directory, "containers", id), { recursive: true });
    await writeFile(join(directory, "containers", id, "resolv.conf"), Buffer.alloc(2 * MIB));
  }
  const watch = watchOwnFiles({ dataRoot: () => Promise.resolve(directory), containers: () => ids, log });
  const sizes = () =>
    Promise.all(ids.map(async (id) => (await stat(join(directory, "containers", id, "resolv.conf"))).size));
  await expect.poll(sizes).toEqual([MIB, MIB, MIB]);
  await watch.stop();
});
