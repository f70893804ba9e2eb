import { expect, test } from "vitest";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { createCodec } from "../../../../agent/blobs/content/codec.ts";
import { keyOf, refOf } from "../../../../agent/blobs/content/refs.ts";
import { type BlobSource, createReader, peerSource, storeSource } from "../../../../agent/blobs/sources.ts";
import { memoryBlobStore } from "../../../support/fakes/memory-blob-store.ts";

const codec = createCodec({ keys: [], domain: "" });
const content = Buffer.from("the content of a blob");
const id = await codec.idOf(content);
const ref = refOf(id, 7);
const stored = await codec.encode(id, content);
const { signal } = new AbortController();

function counted(name: string, answer: () => Promise<Uint8Array | undefined>): BlobSource & { asked: number } {
  const source = peerSource(name, () => {
    counting.asked++;
    return answer();
  });
  const counting = { ...source, asked: 0 };
  return counting;
}

const has = (name: string) => counted(name, async () => stored);
const lacks = (name: string) => counted(name, async () => undefined);
const isAway = (name: string) =>
  counted(name, async () => {
    throw new Error("connect ECONNREFUSED");
  });
const damaged = (name: string) => counted(name, async () => Buffer.concat([stored, Buffer.from("!")]));

function reading(sources: readonly BlobSource[]) {
  const clock = { now: 0 };
  return { clock, reader: createReader({ sources, codec, now: () => clock.now }) };
}

test("a blob comes from the first source that has it, and the others are not asked", async () => {
  const sources = [lacks("a"), has("b"), has("c")];
  const { reader } = reading(sources);
  expect(await reader.read(ref, signal)).toEqual(content);
  expect(sources.map(({ asked }) => asked)).toEqual([1, 1, 0]);
  expect([...reader.served()]).toEqual([["the node b", { blobs: 1, bytes: content.length }]]);
});

test("a damaged blob comes from the next source, and the reader keeps which one was damaged", async () => {
  const { reader } = reading([damaged("a"), has("b")]);
  expect(await reader.read(ref, signal)).toEqual(content);
  expect(reader.complaints()).toMatchObject([
    { fault: "damaged", message: expect.stringContaining("the node a: blob ") as string },
  ]);
});

test("a source that does not answer is asked last for a time, and first again afterwards", async () => {
  const [away, other] = [isAway("a"), has("b")];
  const { reader, clock } = reading([away, other]);
  await reader.read(ref, signal);
  await reader.read(ref, signal);
  expect([away.asked, other.asked]).toEqual([1, 2]);
  clock.now = 30_001;
  await reader.read(ref, signal);
  expect([away.asked, other.asked]).toEqual([2, 3]);
});

test("a source that did not answer is still asked when no other has the blob", async () => {
  const state = { away: true };
  const source = counted("a", async () => {
    if (state.away) throw new Error("connect ECONNREFUSED");
    return stored;
  });
  const { reader } = reading([source, lacks("b")]);
  await expect(reader.read(ref, signal)).rejects.toMatchObject({ fault: "unreachable" });
  state.away = false;
  expect(await reader.read(ref, signal)).toEqual(content);
});

test.each([
  { named: "missing", sources: [lacks("a"), lacks("b")], fault: "missing" },
  { named: "unreachable", sources: [lacks("a"), isAway("b")], fault: "unreachable" },
  { named: "damaged", sources: [isAway("a"), damaged("b")], fault: "damaged" },
])("a blob that no source gives is $named, by the worst of their answers", async ({ sources, fault }) => {
  await expect(reading(sources).reader.read(ref, signal)).rejects.toMatchObject({ fault });
});

test("the error for a missing blob names the sources that were asked", async () => {
  await expect(reading([lacks("a"), storeSource(memoryBlobStore())]).reader.read(ref, signal)).rejects.toThrow(
    `blob ${ref} is in none of 2 sources (the node a, the store in memory)`,
  );
});

test("a store is a source by the names of its objects, and tells a missing blob from a store that is away", async () => {
  const store = memoryBlobStore();
  const source = storeSource(store);
  expect(await source.get(ref, signal)).toBeUndefined();
  store.objects.set(keyOf(ref), stored);
  expect(await source.get(ref, signal)).toEqual(stored);
  store.before = () => {
    throw new BlobError("unreachable", "away");
  };
  await expect(source.get(ref, signal)).rejects.toMatchObject({ fault: "unreachable" });
});

test("a read that its caller has given up asks no further source", async () => {
  const controller = new AbortController();
  const first = counted("a", async () => {
    controller.abort(new Error("given up"));
    throw new Error("cut");
  });
  const second = has("b");
  await expect(reading([first, second]).reader.read(ref, controller.signal)).rejects.toThrow("given up");
  expect(second.asked).toBe(0);
});
