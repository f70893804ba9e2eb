/** Volumes by the published SDK: their routes, their files, and sandboxes that share one. */

import { randomBytes, randomUUID } from "node:crypto";
import { Sandbox, Volume, VolumeError, VolumeNotFoundError, VolumePathNotFoundError } from "e2b";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { watchWorst } from "../../attack/flood/memory.ts";
import { dropFrozen } from "../../support/platform/frozen.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import { pidOf } from "../../support/platform/programs.ts";
import { forkOf } from "../../support/sandbox/egress.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";
import { upAndDown } from "../../support/volumes/large-file.ts";

const platform = openPlatform();
/** What one upload brings. From 256 on the test also judges the memory of the programs, which needs root. */
const MEGABYTES = Number(process.env["SVC_TEST_VOLUME_MB"] ?? "16");
const MOST_GROWTH_MB = 100;

const fresh = () => `volume-${randomUUID().slice(0, 8)}`;

let volume: Volume;
/** Both mount the volume: the first one at /data, the second one at /mnt/shared. */
let first: Sandbox;
let second: Sandbox;
beforeAll(async () => {
  volume = await Volume.create(fresh());
  const start = (volumeMounts: Record<string, Volume | string>) =>
    Sandbox.create({ timeoutMs: 1_800_000, volumeMounts });
  [first, second] = await Promise.all([start({ "/data": volume }), start({ "/mnt/shared": volume.name })]);
});
afterAll(async () => {
  await Promise.all([first, second].map((sandbox) => sandbox.kill()));
  await Volume.destroy(volume.volumeId);
});

const shell = async (sandbox: Sandbox, command: string) => (await sandbox.commands.run(command)).stdout.trim();

async function background(sandbox: Sandbox, command: string): Promise<number> {
  const handle = await sandbox.commands.run(command, { background: true, timeoutMs: 0 });
  await handle.disconnect();
  return handle.pid;
}

describe("the routes of volumes", () => {
  test("read, list and connect; every read has a token of its own", async () => {
    const { volumeId, name } = volume;
    expect(await Volume.list()).toContainEqual({ volumeId, name });
    const read = await Volume.getInfo(volumeId);
    expect(read).toMatchObject({ volumeId, name });
    const connected = await Volume.connect(volumeId);
    expect(connected).toMatchObject({ volumeId, name });
    expect(new Set([volume.token, read.token, connected.token]).size).toBe(3);
    await connected.writeFile("/connected", "by another object");
    expect(await volume.readFile("/connected")).toBe("by another object");
  });

  test("refuse a name that exists or is wrong, and an unknown volume with the SDK's own classes", async () => {
    for (const [name, status] of [
      [volume.name, "409"],
      ["a b", "400"],
    ] as const) {
      const error = await refusal(Volume.create(name));
      expect([error.name, error.message]).toEqual(["VolumeError", expect.stringContaining(status) as string]);
    }
    const unknown = randomUUID();
    await expect(Volume.connect(unknown)).rejects.toThrow(VolumeNotFoundError);
    await expect(Volume.getInfo(unknown)).rejects.toThrow(VolumeNotFoundError);
    expect(await Volume.destroy(unknown)).toBe(false);
    const error = await refusal(Sandbox.create({ volumeMounts: { "/data": fresh(), "/proc/x": volume } }));
    expect(error.message).toMatch(/volumeMounts\.0\.name.*volumeMounts\.1\.path/);
  });

  test("do not delete a volume that a sandbox mounts, and delete it afterwards", async () => {
    const own = await Volume.create(fresh());
    onTestFinished(async () => void (await Volume.destroy(own.volumeId)));
    const sandbox = await ownSandbox({ volumeMounts: { "/data": own } });
    const error = await refusal(Volume.destroy(own.volumeId));
    expect(error).toBeInstanceOf(VolumeError);
    expect(error.message).toContain(`is mounted by sandbox ${sandbox.sandboxId}`);
    expect(await shell(sandbox, "echo kept > /data/file && cat /data/file")).toBe("kept");
    expect(await own.readFile("/file")).toBe("kept\n");
    await sandbox.kill();
    expect(await Volume.destroy(own.volumeId)).toBe(true);
    expect(await Volume.destroy(own.volumeId)).toBe(false);
    await expect(Volume.connect(own.volumeId)).rejects.toThrow(VolumeNotFoundError);
  });
});

describe("the files of a volume", () => {
  test("are written from text, bytes, a blob and a stream, and read in every format", async () => {
    const bytes = randomBytes(100_000);
    const copy = () => new Uint8Array(bytes);
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(copy().subarray(0, 40_000));
        controller.enqueue(copy().subarray(40_000));
        controller.close();
      },
    });
    await volume.writeFile("/bytes", copy().buffer);
    await volume.writeFile("/blob", new Blob([copy()]));
    expect((await volume.writeFile("/stream", stream)).size).toBe(bytes.length);
    const blob = await volume.readFile("/bytes", { format: "blob" });
    expect(Buffer.from(await blob.arrayBuffer()).equals(bytes)).toBe(true);
    expect(Buffer.from(await volume.readFile("/blob", { format: "bytes" })).equals(bytes)).toBe(true);
    const parts: Uint8Array[] = [];
    const received = await volume.readFile("/stream", { format: "stream" });
    for await (const part of received as unknown as AsyncIterable<Uint8Array>) parts.push(part);
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);

    const made = await volume.writeFile("/text", "grüße");
    expect(made).toMatchObject({ name: "text", path: "/text", type: "file", size: 7, mode: 0o644, uid: 1000 });
    expect(made.mtime.getTime()).toBeGreaterThan(Date.now() - 60_000);
    await volume.writeFile("/empty", "");
    expect([await volume.readFile("/text"), await volume.readFile("/empty")]).toEqual(["grüße", ""]);
    expect((await refusal(volume.writeFile("/text", "again"))).message).toContain("409");
    await volume.writeFile("/text", "again", { force: true, mode: 0o600, uid: 0 });
    expect(await volume.getInfo("/text")).toMatchObject({ size: 5, mode: 0o600, uid: 0 });
  });

  test("are in directories that are made, listed to a depth, changed and removed", async () => {
    expect((await refusal(volume.makeDir("/top/deep"))).name).toBe("VolumePathNotFoundError");
    expect(await volume.makeDir("/top/deep", { force: true })).toMatchObject({ type: "directory", mode: 0o755 });
    expect((await refusal(volume.makeDir("/top/deep"))).message).toContain("409");
    await volume.makeDir("/top/deep", { force: true });
    await volume.writeFile("/top/deep/file", "x");
    const paths = async (depth?: number) =>
      (await volume.list("/top", depth === undefined ? {} : { depth })).map(({ path }) => path).sort();
    expect([await paths(), await paths(2)]).toEqual([["/top/deep"], ["/top/deep", "/top/deep/file"]]);
    expect(await volume.updateMetadata("/top/deep/file", { uid: 5, gid: 6, mode: 0o640 })).toMatchObject({
      uid: 5,
      gid: 6,
      mode: 0o640,
    });
    expect([await volume.exists("/top/deep/file"), await volume.exists("/top/none")]).toEqual([true, false]);
    await volume.remove("/top");
    const missing = [
      volume.getInfo("/top"),
      volume.list("/top"),
      volume.readFile("/top/deep/file"),
      volume.updateMetadata("/top", { mode: 0o700 }),
      volume.remove("/top"),
      volume.writeFile("/top/deep/file", "x"),
    ];
    for (const error of await Promise.all(missing.map(refusal))) expect(error).toBeInstanceOf(VolumePathNotFoundError);
  });

  test(`of ${MEGABYTES} MB go up and come down unchanged`, { timeout: 600_000 }, async () => {
    const programs = MEGABYTES < 256 ? [] : (["orchestrator", "agent"] as const);
    const watched = await Promise.all(
      programs.map(async (name) => {
        const worst = await watchWorst({ name, pid: await pidOf(platform, name) });
        onTestFinished(() => worst.stop());
        return { name, worst, before: (await worst.read()).memoryMb };
      }),
    );
    const seconds = await upAndDown(volume, MEGABYTES);
    for (const { name, worst, before } of watched) {
      const { memoryMb } = await worst.read();
      console.log(`${name}: ${before} MB before, ${memoryMb} MB at most; ${JSON.stringify(seconds)}`);
      expect(memoryMb - before, `growth of the ${name}`).toBeLessThan(MOST_GROWTH_MB);
    }
  });
});

describe("two sandboxes in one volume", () => {
  test("write and read one SQLite database and one git repository", async () => {
    const insert = (folder: string, by: string) =>
      `python3 -c "
import sqlite3
db = sqlite3.connect('${folder}/shared.db', timeout=30)
for i in range(50):
  with db: db.execute('insert into t values (?)', ('${by}',))
print(db.execute('pragma integrity_check').fetchone()[0])"`;
    // Two programs at once cannot make the journal: SQLite does not wait for that lock.
    const made = "sqlite3 /data/shared.db 'create table t (v text); pragma journal_mode=wal'";
    expect(await shell(first, made)).toBe("wal");
    const inserted = [shell(first, insert("/data", "first")), shell(second, insert("/mnt/shared", "second"))];
    expect(await Promise.all(inserted)).toEqual(["ok", "ok"]);
    expect(await shell(second, "sqlite3 /mnt/shared/shared.db 'select v, count(*) from t group by v'")).toBe(
      "first|50\nsecond|50",
    );
    const commit =
      "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l && git fsck";
    expect(await shell(first, `git init -q /data/repo && cd /data/repo && ${commit}`)).toBe("1");
    expect(await shell(second, `cd /mnt/shared/repo && ${commit}`)).toBe("2");
  });

  test("exclude each other by flock, until the one that holds the lock ends", async () => {
    await background(first, "exec flock /data/lock sleep 600");
    const tried = (wait: string) => shell(second, `flock ${wait} /mnt/shared/lock echo got || echo busy`);
    await expect.poll(() => tried("-n")).toBe("busy");
    await shell(first, "pkill -x sleep");
    expect(await tried("-w 60")).toBe("got");
  });

  test("keep open files over pause and resume, and share the volume with a fork", async () => {
    const pid = await background(
      first,
      `exec python3 -c "
import time
log = open('/data/log', 'a+', buffering=1)
while True: log.write('x\\n'); time.sleep(0.05)"`,
    );
    const lines = async () => Number(await shell(second, "cat /mnt/shared/log | wc -l"));
    await expect.poll(() => second.files.exists("/mnt/shared/log")).toBe(true);
    await expect.poll(lines).toBeGreaterThan(0);
    await first.pause();
    // So that the resume is one from the stored memory.
    await dropFrozen(platform, first.sandboxId);
    const paused = await lines();
    await shell(second, "echo by-the-other >> /mnt/shared/log");
    expect(await lines()).toBe(paused + 1);
    first = await Sandbox.connect(first.sandboxId, { timeoutMs: 1_800_000 });
    expect(await shell(first, `cat /proc/${pid}/comm`)).toBe("python3");
    await expect.poll(lines).toBeGreaterThan(paused + 2);

    const fork = await forkOf(first);
    await first.commands.kill(pid);
    const stopped = await lines();
    // The fork's own copy of the program goes on with the same file.
    await expect.poll(lines).toBeGreaterThan(stopped + 1);
    await shell(fork, `kill ${pid}; echo fork > /data/by-fork`);
    expect(await shell(first, "cat /data/by-fork")).toBe("fork");
    expect((await fork.getInfo()).volumeMounts).toEqual([{ name: volume.name, path: "/data" }]);
  });
});
