import { createHook } from "node:async_hooks";
import { createHash, randomBytes } from "node:crypto";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { followHashes, sha256 } from "../../../../agent/snapshots/store/hashes.ts";

const MIB = 1024 * 1024;
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "svc-hashes-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const at = (name: string) => join(directory, name);
const whole = (name: string) =>
  createHash("sha256")
    .update(readFileSync(at(name)))
    .digest("hex");

test("a growing file is read as it grows and gets the hash of the whole, as do small, large and empty files", async () => {
  const hashes = followHashes(directory);
  // Odd sizes: each reading of the file ends in the middle of a step.
  for (const size of [1, 3 * MIB + 7, 40 * MIB, 0, 100_001]) {
    appendFileSync(at("pages-1.img"), randomBytes(size));
    await delay(15);
  }
  appendFileSync(at("pages-2.img"), randomBytes(4_096));
  writeFileSync(at("core-1.img"), randomBytes(5_000));
  writeFileSync(at("tmpfs-2.img"), randomBytes(2 * MIB + 1));
  writeFileSync(at("empty.img"), "");
  const files = await hashes.finish();
  const names = ["core-1.img", "empty.img", "pages-1.img", "pages-2.img", "tmpfs-2.img"];
  expect(files).toEqual(
    names.map((name) => {
      const { size, ctimeMs } = statSync(at(name));
      return { name, size, sha256: whole(name), changedAt: ctimeMs };
    }),
  );
  for (const name of names) expect(await sha256(at(name), new AbortController().signal)).toBe(whole(name));
});

test("files that do not grow any more are not read again", async () => {
  for (let n = 1; n <= 100; n++) writeFileSync(at(`pages-${n}.img`), randomBytes(4_096));
  const hashes = followHashes(directory);
  const calls = { count: 0 };
  const hook = createHook({ init: (_id, type) => void (type === "FSREQPROMISE" && calls.count++) }).enable();
  onTestFinished(() => void hook.disable());
  const ofASecond = async () => {
    const before = calls.count;
    await delay(1_000);
    return calls.count - before;
  };
  // In each of a hundred rounds one for the list of the directory, and otherwise some for each file. On a busy machine the first
  // reading of all takes seconds.
  await expect.poll(ofASecond, { timeout: 30_000 }).toBeLessThan(200);
  expect(calls.count).toBeGreaterThan(0);
  expect(await hashes.finish()).toHaveLength(100);
});

test("many files of a dump are flushed while it goes on, though none of them is large", async () => {
  const one = await open(directory, "r");
  const flushed = vi.spyOn(Object.getPrototypeOf(one) as typeof one, "datasync");
  onTestFinished(() => flushed.mockRestore());
  await one.close();
  const hashes = followHashes(directory);
  for (let n = 1; n <= 31; n++) writeFileSync(at(`pages-${n}.img`), randomBytes(MIB));
  await delay(200);
  expect(flushed).not.toHaveBeenCalled();
  for (let n = 32; n <= 48; n++) writeFileSync(at(`pages-${n}.img`), randomBytes(MIB));
  await expect.poll(() => flushed.mock.calls.length, { timeout: 30_000 }).toBeGreaterThan(0);
  const files = await hashes.finish();
  expect(files).toHaveLength(48);
  for (const { name, sha256: found } of files) expect(found).toBe(whole(name));
});

test("a file that is shorter than the bytes read of it fails the check", async () => {
  const hashes = followHashes(directory);
  writeFileSync(at("pages-1.img"), randomBytes(MIB));
  await delay(100);
  truncateSync(at("pages-1.img"), 10);
  // When the cut comes before the first reading, the file is only short, and its hash is that of the remaining bytes.
  const outcome = await hashes.finish().then(
    (files) => files[0]?.sha256 === whole("pages-1.img"),
    (error: unknown) => String(error).includes("changed while it was read"),
  );
  expect(outcome).toBe(true);
});

test("a hash for which no caller waits stops", async () => {
  writeFileSync(at("pages-1.img"), randomBytes(MIB));
  await expect(sha256(at("pages-1.img"), AbortSignal.abort(new Error("over")))).rejects.toThrow("over");
});
