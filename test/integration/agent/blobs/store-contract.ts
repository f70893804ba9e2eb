/** What every store of blobs promises, as tests that each kind of store runs. */

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ALL_BLOBS, keyOf, PERIOD_MS, refOf } from "../../../../agent/blobs/content/refs.ts";
import { collectGarbage } from "../../../../agent/blobs/garbage.ts";
import { createReader, storeSource } from "../../../../agent/blobs/sources.ts";
import { type BlobStore, listAll } from "../../../../agent/blobs/stores/store.ts";
import { type Uploaded, uploadTree } from "../../../../agent/blobs/upload.ts";
import { makeTree, uploading } from "./trees.ts";

const { signal } = new AbortController();

export function randomKey(): string {
  return keyOf(refOf(randomBytes(32).toString("hex"), 1));
}

/** @param store an empty store, the same for all tests */
export function storeContract(store: () => BlobStore): void {
  test("an object is read as it was written, whole and in ranges", async () => {
    const key = randomKey();
    const bytes = randomBytes(100_000);
    expect(await store().put(key, bytes, signal)).toBe("stored");
    expect(await store().size(key, signal)).toBe(100_000);
    expect((await store().get(key, signal)).equals(bytes)).toBe(true);
    for (const [from, length] of [
      [0, 1],
      [10, 90],
      [99_999, 1],
      [99_990, 50],
    ] as const) {
      const range = await store().get(key, signal, { from, length });
      expect(range.equals(bytes.subarray(from, from + length)), `${length} bytes from ${from}`).toBe(true);
    }
    expect(await store().get(key, signal, { from: 100_000, length: 5 })).toHaveLength(0);
  });

  test("an object of more than one part is read as it was written", async () => {
    const key = randomKey();
    const bytes = randomBytes(21 * 1024 * 1024 + 17);
    await store().put(key, bytes, signal);
    expect(await store().size(key, signal)).toBe(bytes.length);
    expect((await store().get(key, signal)).equals(bytes)).toBe(true);
    const [from, length] = [16 * 1024 * 1024 - 100, 1_000];
    expect((await store().get(key, signal, { from, length })).equals(bytes.subarray(from, from + length))).toBe(true);
    await store().delete(key, signal);
  });

  test("an object that is there is not written again, unless it is to be replaced", async () => {
    const key = randomKey();
    await store().put(key, Buffer.from("first"), signal);
    expect(await store().put(key, Buffer.from("second"), signal)).toBe("present");
    expect((await store().get(key, signal)).toString()).toBe("first");
    expect(await store().put(key, Buffer.from("third"), signal, true)).toBe("stored");
    expect((await store().get(key, signal)).toString()).toBe("third");
  });

  test("writers of one object at the same time all succeed, and it is whole", async () => {
    const key = randomKey();
    const bytes = randomBytes(300_000);
    await Promise.all(Array.from({ length: 6 }, () => store().put(key, bytes, signal)));
    expect((await store().get(key, signal)).equals(bytes)).toBe(true);
  });

  test("an object that is not there is missing by name, has no size, and can be deleted", async () => {
    const key = randomKey();
    expect(await store().size(key, signal)).toBeUndefined();
    await store().delete(key, signal);
    await expect(store().get(key, signal)).rejects.toMatchObject({
      fault: "missing",
      message: expect.stringContaining(key) as string,
    });
  });

  test("a deleted object is gone", async () => {
    const key = randomKey();
    await store().put(key, Buffer.from("x"), signal);
    await store().delete(key, signal);
    expect(await store().size(key, signal)).toBeUndefined();
  });

  test("lists have every object below a prefix once, by name and with its size, from where the caller is", async () => {
    const own = ["aa", "ab", "ab", "fe"].map((first) => keyOf(refOf(first + randomBytes(31).toString("hex"), 5)));
    for (const [index, key] of own.entries()) await store().put(key, Buffer.alloc(index + 1), signal);
    const listed = async (prefix: string) => {
      const found = [];
      for await (const each of listAll(store(), prefix, signal)) found.push(each);
      return found;
    };
    const all = await listed("sha256/");
    expect(all.map(({ key }) => key)).toEqual(all.map(({ key }) => key).toSorted());
    for (const [index, key] of own.entries()) expect(all).toContainEqual({ key, bytes: index + 1 });
    expect((await listed("sha256/ab")).map(({ key }) => key)).toEqual(expect.arrayContaining(own.slice(1, 3)));
    const [, second = ""] = own.toSorted();
    expect(await listed(second)).toHaveLength(1);
    const { found } = await store().list("sha256/", second, signal);
    expect(found.map(({ key }) => key)).not.toContain(second);
    expect(found.every(({ key }) => key > second)).toBe(true);
  });

  test("garbage goes out of it, and what a reference names stays whole", async () => {
    const folder = await mkdtemp(join(tmpdir(), "svc-collected-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const { clock, deps } = uploading(store(), { sealed: true });
    const keys = ({ ref, manifest }: Uploaded) => [ref, ...manifest.blobs.map(([blob]) => blob)].map(keyOf);
    const upload = async (name: string, seed: number) => {
      const root = join(folder, name);
      // The first file is the same in all of them.
      await makeTree(root, [
        { path: "a", size: 300_000, ranges: [{ at: 0, length: 300_000, seed: 1 }] },
        { path: "b", size: 300_001, ranges: [{ at: 0, length: 300_001, seed }] },
      ]);
      return uploadTree(deps, { root, kind: "tree" }, signal);
    };
    const [named, forgotten] = [await upload("named", 2), await upload("forgotten", 3)];
    clock.now += 4 * PERIOD_MS;
    const young = await upload("young", 2);
    const reader = createReader({ sources: [storeSource(store())], codec: deps.codec, now: deps.now });
    const { removed } = await collectGarbage(
      { store: store(), now: deps.now },
      { live: [{ ref: named.ref, reader }] },
      signal,
    );
    const kept = new Set([...keys(named), ...keys(young)]);
    expect(removed).toBeGreaterThanOrEqual(keys(forgotten).filter((key) => !kept.has(key)).length);
    const left: string[] = [];
    for await (const { key } of listAll(store(), ALL_BLOBS, signal)) left.push(key);
    expect(left).toEqual([...kept].toSorted());
  });

  test("a key that would lead out of the store is refused", async () => {
    for (const key of ["../x", "sha256/../x", "/etc/passwd", "", "a//b", "sha256/ABC"])
      await expect(
        Promise.resolve().then(() => store().put(key, Buffer.from("x"), signal)),
        `the key ${JSON.stringify(key)}`,
      ).rejects.toThrow(TypeError);
  });

  test("a call that its caller has given up rejects with the reason", async () => {
    const reason = new Error("given up");
    await expect(store().put(randomKey(), Buffer.from("x"), AbortSignal.abort(reason))).rejects.toThrow("given up");
    await expect(store().get(randomKey(), AbortSignal.abort(reason))).rejects.toThrow("given up");
  });
}
