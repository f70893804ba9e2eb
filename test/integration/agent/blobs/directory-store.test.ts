import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { claimStore } from "../../../../agent/blobs/stores/claim.ts";
import { directoryStore } from "../../../../agent/blobs/stores/directory.ts";
import { type BlobStore, listAll } from "../../../../agent/blobs/stores/store.ts";
import { smallDisk } from "../../../support/store/small-disk.ts";
import { randomKey, storeContract } from "./store-contract.ts";

const { signal } = new AbortController();
let folder: string;
let store: BlobStore;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-blobs-"));
  await mkdir(join(folder, "store"));
  store = directoryStore(join(folder, "store"));
});
afterAll(() => rm(folder, { recursive: true }));

async function ownStore(): Promise<{ root: string; store: BlobStore }> {
  const root = await mkdtemp(join(folder, "own-"));
  return { root, store: directoryStore(root) };
}

describe("a store in a directory", () => {
  storeContract(() => store);

  test("lists more objects than a page holds, in order", async () => {
    const { root, store } = await ownStore();
    const keys = Array.from({ length: 2_300 }, randomKey);
    for (const key of keys) {
      const id = key.slice("sha256/".length);
      await mkdir(join(root, "sha256", id.slice(0, 2)), { recursive: true });
      await writeFile(join(root, "sha256", id.slice(0, 2), id), "x");
    }
    const found: string[] = [];
    for await (const { key } of listAll(store, "sha256/", signal)) found.push(key);
    expect(found).toEqual(keys.toSorted());
  });

  test("that is away is unreachable for every call, and nothing is written where it should be", async () => {
    const { root, store } = await ownStore();
    const key = randomKey();
    await store.put(key, Buffer.from("x"), signal);
    await rename(root, `${root}-away`);
    const calls = [
      () => store.put(randomKey(), Buffer.from("x"), signal),
      () => store.get(key, signal),
      () => store.size(key, signal),
      () => store.delete(key, signal),
      () => store.list("sha256/", "", signal),
    ];
    for (const call of calls)
      await expect(call()).rejects.toMatchObject({
        fault: "unreachable",
        message: expect.stringContaining(`the store ${root} is not there: is its file system mounted?`) as string,
      });
    expect(await readdir(folder)).not.toContain(root.slice(folder.length + 1));
    await rename(`${root}-away`, root);
    expect((await store.get(key, signal)).toString()).toBe("x");
  });

  test("whose file system may only be read is denied to writers, and readers go on", async () => {
    const disk = smallDisk(4);
    onTestFinished(() => disk.remove());
    const own = directoryStore(disk.place);
    const key = randomKey();
    await own.put(key, Buffer.from("x"), signal);
    execFileSync("mount", ["-o", "remount,ro", disk.place]);
    await expect(own.put(randomKey(), Buffer.from("x"), signal)).rejects.toMatchObject({
      fault: "denied",
      message: expect.stringContaining("(EROFS)") as string,
    });
    expect((await own.get(key, signal)).toString()).toBe("x");
  });

  test("that is full says so, keeps nothing of the object, and takes it once there is room", async () => {
    const disk = smallDisk(8);
    onTestFinished(() => disk.remove());
    const own = directoryStore(disk.place);
    await own.put(randomKey(), Buffer.alloc(1_000, 1), signal);
    const key = randomKey();
    const bytes = Buffer.alloc(9 * 1024 * 1024, 1);
    await expect(own.put(key, bytes, signal)).rejects.toMatchObject({ fault: "full" });
    expect(await own.size(key, signal)).toBeUndefined();
    expect(await readdir(join(disk.place, "new"))).toEqual([]);
    disk.fill();
    await expect(own.put(key, bytes.subarray(0, 100_000), signal)).rejects.toMatchObject({ fault: "full" });
    disk.makeRoom();
    await own.put(key, bytes.subarray(0, 100_000), signal);
    expect(await own.size(key, signal)).toBe(100_000);
  });

  test("that does not answer is unreachable after the time limit", async () => {
    const { root } = await ownStore();
    const slow = directoryStore(root, 1);
    const large = Buffer.alloc(20 * 1024 * 1024);
    await expect(slow.put(randomKey(), large, signal)).rejects.toMatchObject({
      fault: "unreachable",
      message: expect.stringMatching(/did not store .* within 0.001 s/) as string,
    });
  });

  test("loses the drafts of killed writers when they are old, and no others", async () => {
    const { root, store } = await ownStore();
    await store.put(randomKey(), Buffer.from("x"), signal);
    await writeFile(join(root, "new", "old"), "half of an obj");
    await writeFile(join(root, "new", "young"), "half of an obj");
    await utimes(join(root, "new", "old"), 1_000, 1_000);
    expect(await store.tidy(2_000_000, signal)).toBe(1);
    expect(await readdir(join(root, "new"))).toEqual(["young"]);
  });
});

describe("a writer that is killed", () => {
  // Each object is one byte, repeated, so that a part of one, or a mixture of two, shows.
  const writer = `
    const [store, root, length] = process.argv.slice(1);
    const { directoryStore } = await import(store);
    const own = directoryStore(root);
    const { randomBytes } = await import("node:crypto");
    for (;;) {
      const id = randomBytes(32).toString("hex");
      await own.put("sha256/" + id + ".1", Buffer.alloc(Number(length), id.slice(0, 2), "hex"), new AbortController().signal);
      process.stdout.write(id + "\\n");
    }`;
  const source = new URL("../../../../agent/blobs/stores/directory.ts", import.meta.url).href;

  test("at any moment leaves whole objects and drafts, and every object that it had stored", async () => {
    const { root, store } = await ownStore();
    const length = 300_000;
    for (let round = 0; round < 6; round++) {
      const child = spawn(
        process.execPath,
        ["--import", "tsx", "--input-type=module", "-e", writer, source, root, String(length)],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      const stored: string[] = [];
      child.stdout.on("data", (data: Buffer) => stored.push(data.toString("utf8")));
      await expect.poll(() => stored.length, { timeout: 60_000 }).toBeGreaterThan(round);
      // A moment within the next write, another one in each round.
      await delay(Math.random() * 20);
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      const acknowledged = stored.join("").split("\n").slice(0, -1);
      for (const id of acknowledged) expect(await store.size(`sha256/${id}.1`, signal), id).toBe(length);
    }
    for await (const { key, bytes } of listAll(store, "sha256/", signal)) {
      expect(bytes, key).toBe(length);
      const content = await store.get(key, signal);
      expect(content.equals(Buffer.alloc(length, key.slice(7, 9), "hex")), key).toBe(true);
    }
    await store.tidy(Date.now() + 60_000, signal);
    expect(await readdir(join(root, "new"))).toEqual([]);
  });
});

describe("a claim", () => {
  const { signal } = new AbortController();
  const own = { owner: "platform-a", usedBefore: false };

  test("makes an empty store the platform's, for all of its nodes at once", async () => {
    const { store } = await ownStore();
    await Promise.all(Array.from({ length: 4 }, () => claimStore(store, own, signal)));
    await claimStore(store, { ...own, usedBefore: true }, signal);
  });

  test("of another platform's store is refused, with the name of its owner", async () => {
    const { store } = await ownStore();
    await claimStore(store, own, signal);
    await expect(claimStore(store, { ...own, owner: "platform-b" }, signal)).rejects.toMatchObject({
      fault: "foreign",
      message: `${store.name} belongs to another platform, platform-a`,
    });
  });

  test("of an empty directory where the store was before is refused: its share is not mounted", async () => {
    const { store } = await ownStore();
    await expect(claimStore(store, { ...own, usedBefore: true }, signal)).rejects.toMatchObject({
      fault: "foreign",
      message: `${store.name} is empty, and was not before: is its share mounted?`,
    });
  });

  test("of a store that holds blobs of nobody is refused", async () => {
    const { store } = await ownStore();
    await store.put(randomKey(), Buffer.from("x"), signal);
    await expect(claimStore(store, own, signal)).rejects.toMatchObject({ fault: "foreign" });
  });

  test.each(["{", "{}", '{"format":9,"owner":"platform-a"}'])(
    "in a form that is not understood is refused: %s",
    async (text) => {
      const { store } = await ownStore();
      await store.put("store", Buffer.from(text), signal);
      await expect(claimStore(store, own, signal)).rejects.toMatchObject({ fault: "foreign" });
    },
  );
});
