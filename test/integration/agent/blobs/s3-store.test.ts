import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { claimStore } from "../../../../agent/blobs/stores/claim.ts";
import { type S3Store, s3Store } from "../../../../agent/blobs/stores/s3.ts";
import { type S3Options, type S3Place, s3Requests } from "../../../../agent/blobs/stores/s3-requests.ts";
import { listAll } from "../../../../agent/blobs/stores/store.ts";
import { type Swift, secrets, startSwift } from "../../../support/s3/swift.ts";
import { smallDisk } from "../../../support/store/small-disk.ts";
import { randomKey, storeContract } from "./store-contract.ts";

const { signal } = new AbortController();
let swift: Swift;
let place: S3Place;
let store: S3Store;
beforeAll(async () => {
  swift = await startSwift();
  place = { ...(await swift.bucket("blobs")), prefix: "platform/one" };
  store = s3Store(place, secrets);
}, 180_000);
afterAll(async () => {
  await store?.close();
  await swift?.stop();
}, 60_000);

/** Another client of the same bucket. */
function client(changes: Partial<S3Place> = {}, secret = secrets, options: S3Options = {}): S3Store {
  const own = s3Store({ ...place, ...changes }, secret, options);
  onTestFinished(() => own.close());
  return own;
}

describe("a store in a bucket", () => {
  storeContract(() => store);

  test("lists more objects than a page holds, in order", async () => {
    const own = client({ prefix: "long" }, secrets, { page: 3 });
    const keys = Array.from({ length: 10 }, randomKey);
    for (const key of keys) await own.put(key, Buffer.from("x"), signal, true);
    const found: string[] = [];
    for await (const { key } of listAll(own, "sha256/", signal)) found.push(key);
    expect(found).toEqual(keys.toSorted());
  });

  test("does not see objects of another prefix of its bucket", async () => {
    const [one, two] = [client({ prefix: "p" }), client({ prefix: "p2" })];
    const key = randomKey();
    await two.put(key, Buffer.from("x"), signal);
    expect(await one.size(key, signal)).toBeUndefined();
    expect((await one.list("sha256/", "", signal)).found).toEqual([]);
    await claimStore(one, { owner: "a", usedBefore: false }, signal);
    await claimStore(client({ prefix: "p3" }), { owner: "b", usedBefore: false }, signal);
  });

  test("ends uploads of killed writers when they are old", async () => {
    const at = { ...place, prefix: "cut" };
    const requests = s3Requests(at, secrets);
    onTestFinished(() => requests.close());
    // What a writer has begun when it is killed.
    await requests.send(
      { method: "POST", key: randomKey(), query: { uploads: "" }, expect: [200], what: "begin an upload" },
      signal,
    );
    const own = client({ prefix: "cut" });
    expect(await own.tidy(Date.now() - 3_600_000, signal)).toBe(0);
    expect(await own.tidy(Date.now() + 3_600_000, signal)).toBe(1);
    expect(await own.tidy(Date.now() + 3_600_000, signal)).toBe(0);
  });
});

describe("a store in a bucket names why it cannot be used:", () => {
  test("a wrong secret", async () => {
    const own = client({}, { ...secrets, secretAccessKey: "wrong" });
    const denied = {
      fault: "denied",
      message: expect.stringContaining("SignatureDoesNotMatch; are the access key and its secret right?") as string,
    };
    await expect(own.get(randomKey(), signal)).rejects.toMatchObject(denied);
    await expect(own.put(randomKey(), Buffer.from("x"), signal, true)).rejects.toMatchObject(denied);
    await expect(own.size(randomKey(), signal)).rejects.toMatchObject(denied);
    await expect(claimStore(own, { owner: "a", usedBefore: false }, signal)).rejects.toMatchObject({ fault: "denied" });
  });

  test("a wrong region", async () => {
    const own = client({ region: "eu-west-9" });
    const denied = { fault: "denied", message: expect.stringContaining("is the region right?") as string };
    await expect(own.get(randomKey(), signal)).rejects.toMatchObject(denied);
    await expect(own.size(randomKey(), signal)).rejects.toMatchObject(denied);
  });

  test("a bucket that does not exist", async () => {
    await expect(client({ bucket: "no-such-bucket" }).get(randomKey(), signal)).rejects.toMatchObject({
      fault: "unreachable",
      message: expect.stringContaining("the bucket does not exist") as string,
    });
  });

  test("a clock that is far off", async () => {
    const now = () => Date.now() - 3_600_000;
    await expect(client({}, secrets, { now }).get(randomKey(), signal)).rejects.toMatchObject({
      fault: "denied",
      message: expect.stringContaining("do the clocks of this machine and of the store differ?") as string,
    });
  });

  test("an address where nothing answers", async () => {
    const own = client({ endpoint: "http://127.0.0.1:1" }, secrets, { waits: [1, 1] });
    await expect(own.put(randomKey(), Buffer.from("x"), signal)).rejects.toMatchObject({
      fault: "unreachable",
      message: expect.stringContaining("no answer (ECONNREFUSED)") as string,
    });
  });

  test.each([
    { endpoint: "ftp://example.test" },
    { endpoint: "http://example.test/path" },
    { bucket: "a/b" },
    { bucket: ".." },
    { prefix: "a/../b" },
    { prefix: "a//b" },
    { prefix: "a b" },
  ])("a place that is written wrongly (%o)", (change) => {
    expect(() => s3Store({ ...place, ...change }, secrets)).toThrow(TypeError);
  });
});

describe("a service that is killed and started again", () => {
  test("keeps what it had acknowledged, and a client that retries notices nothing", async () => {
    const own = await startSwift();
    onTestFinished(() => own.stop());
    const at = await own.bucket("kept");
    const client = s3Store(at, secrets, { waits: Array.from({ length: 60 }, () => 500) });
    onTestFinished(() => client.close());
    const keys = Array.from({ length: 40 }, randomKey);
    const contents = keys.map(() => randomBytes(400_000));
    const acknowledged: string[] = [];
    const some = new EventEmitter();
    const first = once(some, "acknowledged");
    // A few at a time, so that most are still to come when the first one is acknowledged.
    const left = [...keys.entries()];
    const writer = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        await client.put(next[1], contents[next[0]] ?? Buffer.alloc(0), signal);
        acknowledged.push(next[1]);
        some.emit("acknowledged");
      }
    };
    const writing = Promise.all(Array.from({ length: 4 }, writer));
    await first;
    await own.kill();
    const before = [...acknowledged];
    await own.start();
    await writing;
    for (const [index, key] of keys.entries())
      expect((await client.get(key, signal)).equals(contents[index] ?? Buffer.alloc(0)), key).toBe(true);
    expect(before.length).toBeLessThan(keys.length);
  }, 240_000);

  test("is given up while it stands still, and used again when it goes on", async () => {
    const own = await startSwift();
    onTestFinished(() => own.stop());
    const at = await own.bucket("still");
    const client = s3Store(at, secrets, { waits: [10], limitMs: 1_000 });
    onTestFinished(() => client.close());
    const patient = s3Store(at, secrets);
    onTestFinished(() => patient.close());
    const key = randomKey();
    await patient.put(key, Buffer.from("x"), signal);
    process.kill(own.pidOf("proxy"), "SIGSTOP");
    await expect(client.get(key, signal)).rejects.toMatchObject({
      fault: "unreachable",
      message: expect.stringContaining("no answer") as string,
    });
    process.kill(own.pidOf("proxy"), "SIGCONT");
    expect((await patient.get(key, signal)).toString()).toBe("x");
  }, 240_000);

  test("ends with each of its servers, and is unreachable meanwhile for a client that has retried enough", async () => {
    const own = await startSwift();
    onTestFinished(() => own.stop());
    const client = s3Store(await own.bucket("away"), secrets, { waits: [10, 10] });
    onTestFinished(() => client.close());
    const key = randomKey();
    await client.put(key, Buffer.from("x"), signal);
    // A list of the others would lack what is stored without it.
    process.kill(own.pidOf("container"), "SIGKILL");
    const reason = () => client.size(key, signal).then(String, String);
    await expect.poll(reason, { timeout: 60_000 }).toContain("no answer (ECONNREFUSED)");
    await expect(client.get(key, signal)).rejects.toMatchObject({ fault: "unreachable" });
    await own.start();
    expect((await client.get(key, signal)).toString()).toBe("x");
  }, 240_000);
});

test("a service whose disk is full refuses an object, keeps those that it has, and takes it once there is room", async () => {
  const disk = smallDisk(96);
  onTestFinished(() => disk.remove());
  const own = await startSwift({ place: disk.place, reserve: "8388608" });
  onTestFinished(() => own.stop());
  // On a full disk Swift may write an object, and then wait for its databases: an attempt and the test have limits of their own.
  const at = await own.bucket("full");
  const client = s3Store(at, secrets, { waits: [10], limitMs: 20_000 });
  onTestFinished(() => client.close());
  const patient = s3Store(at, secrets, { waits: Array.from({ length: 60 }, () => 500) });
  onTestFinished(() => patient.close());
  const signal = AbortSignal.timeout(200_000);
  const [small, large] = [randomKey(), randomKey()];
  await client.put(small, Buffer.from("x"), signal);
  const bytes = randomBytes(1024 * 1024);
  const kept = disk.freeBytes();
  disk.fill();
  expect(kept).toBeGreaterThan(0);
  // Swift has no word of its own for a full disk: it answers that it cannot serve now.
  await expect(client.put(large, bytes, signal)).rejects.toMatchObject({ fault: "unreachable" });
  expect((await client.get(small, signal)).toString()).toBe("x");
  disk.makeRoom();
  expect(await patient.size(large, signal)).toBeUndefined();
  await patient.put(large, bytes, signal);
  expect((await patient.get(large, signal)).equals(bytes)).toBe(true);
}, 240_000);
