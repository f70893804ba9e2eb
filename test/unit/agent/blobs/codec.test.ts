import { createHash, randomBytes } from "node:crypto";
import { deflateRawSync, zstdCompressSync } from "node:zlib";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isFault } from "../../../../agent/blobs/content/blob-error.ts";
import { createCodec, MAX_CONTENT_BYTES } from "../../../../agent/blobs/content/codec.ts";

const KEY = "a secret of the platform, long enough to be one";
const OLD = "the secret of the platform before this one, also long";
const open = createCodec({ keys: [], domain: "p1" });
const sealed = createCodec({ keys: [KEY], domain: "p1" });
const zstd = createCodec({ keys: [], domain: "p1", packing: () => "zstd" });
const sealedZstd = createCodec({ keys: [KEY], domain: "p1", packing: () => "zstd" });
const text = Buffer.from("a line of a file that is compressed\n".repeat(4_000));

/** A stored blob without a seal whose head claims any encoding and length. */
function stored({ encoding, length, payload }: { encoding: number; length: number; payload: Uint8Array }): Buffer {
  const head = Buffer.from([...Buffer.from("SVB1"), encoding, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(length, 6);
  return Buffer.concat([head, payload]);
}

describe("a blob", () => {
  const contents = fc.oneof(
    fc.uint8Array({ maxLength: 2_000 }),
    fc.nat(200_000).map((length) => randomBytes(length)),
    fc.nat(1_000_000).map((length) => Buffer.alloc(length, "text ")),
  );

  test.each([
    { named: "without a key", codec: open },
    { named: "with a key", codec: sealed },
    { named: "packed by zstd", codec: zstd },
    { named: "packed by zstd, with a key", codec: sealedZstd },
  ])("$named opens to the content that was stored", async ({ codec }) => {
    await fc.assert(
      fc.asyncProperty(contents, async (content) => {
        const id = await codec.idOf(content);
        expect((await codec.decode(id, await codec.encode(id, content))).equals(content)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test("without a key has the sha256 of its content as its id", async () => {
    expect(await open.idOf(text)).toBe(createHash("sha256").update(text).digest("hex"));
  });

  test("with a key has an id that nobody without the key can compute, and that differs by domain", async () => {
    const ids = [
      await open.idOf(text),
      await sealed.idOf(text),
      await createCodec({ keys: [KEY], domain: "p2" }).idOf(text),
      await createCodec({ keys: [OLD], domain: "p1" }).idOf(text),
    ];
    expect(new Set(ids).size).toBe(4);
    expect(await createCodec({ keys: [KEY], domain: "p1" }).idOf(text)).toBe(ids[1]);
  });

  test("with a key shows nothing of its content", async () => {
    const content = Buffer.concat([Buffer.from("a password"), randomBytes(1_000)]);
    const bytes = await sealed.encode(await sealed.idOf(content), content);
    expect(bytes.includes("a password")).toBe(false);
    expect((await open.encode(await open.idOf(content), content)).includes("a password")).toBe(true);
  });

  test.each([
    { named: "deflate", codec: open, encoding: 1 },
    { named: "zstd", codec: zstd, encoding: 2 },
  ])("is compressed by $named where that saves a sixteenth, and stored as it is otherwise", async (one) => {
    const { codec, encoding } = one;
    const packed = await codec.encode(await codec.idOf(text), text);
    expect([packed.length < text.length / 10, packed[4]]).toEqual([true, encoding]);
    const noise = randomBytes(300_000);
    const raw = await codec.encode(await codec.idOf(noise), noise);
    expect([raw.length, raw[4]]).toEqual([noise.length + 10, 0]);
  });

  test("has one id however it is packed, and every codec opens what the others have packed", async () => {
    expect(await zstd.idOf(text)).toBe(await open.idOf(text));
    expect(await sealedZstd.idOf(text)).toBe(await sealed.idOf(text));
    const [id, sealedId] = [await open.idOf(text), await sealed.idOf(text)];
    expect((await open.decode(id, await zstd.encode(id, text))).equals(text)).toBe(true);
    expect((await zstd.decode(id, await open.encode(id, text))).equals(text)).toBe(true);
    expect((await sealed.decode(sealedId, await sealedZstd.encode(sealedId, text))).equals(text)).toBe(true);
    expect((await sealedZstd.decode(sealedId, await sealed.encode(sealedId, text))).equals(text)).toBe(true);
  });

  test("is packed as the codec's node may write at the moment", async () => {
    const may = { zstd: false };
    const codec = createCodec({ keys: [], domain: "p1", packing: () => (may.zstd ? "zstd" : "deflate") });
    const id = await codec.idOf(text);
    expect((await codec.encode(id, text))[4]).toBe(1);
    may.zstd = true;
    expect((await codec.encode(id, text))[4]).toBe(2);
    expect((await codec.encode(id, text, "deflate"))[4]).toBe(1);
  });

  test.each(Object.entries({ open, sealed }))(
    "is not compressed for a reader on this machine, and opens as any other (%s)",
    async (_, codec) => {
      const id = await codec.idOf(text);
      const bytes = await codec.encode(id, text, "fast");
      expect(bytes.length).toBeGreaterThan(text.length);
      expect((await codec.decode(id, bytes)).equals(text)).toBe(true);
    },
  );

  test("of more bytes than a blob may have is refused", async () => {
    const large = Buffer.alloc(MAX_CONTENT_BYTES + 1);
    await expect(open.encode("0".repeat(64), large)).rejects.toMatchObject({ fault: "changed" });
  });
});

describe("a store that changes a blob", () => {
  test.each([
    { named: "open", codec: open },
    { named: "sealed", codec: sealed },
    { named: "zstd", codec: zstd },
    { named: "sealed zstd", codec: sealedZstd },
  ])("in any byte of an $named one is noticed", async ({ codec }) => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ minLength: 1, maxLength: 300 }),
          fc.nat(2_000).map((length) => Buffer.alloc(length + 1, "text ")),
        ),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        async (content, place, by) => {
          const id = await codec.idOf(content);
          const bytes = await codec.encode(id, content);
          const at = place % bytes.length;
          bytes[at] = (bytes[at] ?? 0) ^ by;
          const opened = await codec.decode(id, bytes).catch((error: unknown) => error);
          // A head that claims another encoding of the same bytes may open to the same content, and to no other.
          if (Buffer.isBuffer(opened)) expect(opened.equals(content)).toBe(true);
          else expect(isFault(opened, "damaged") || isFault(opened, "unreadable"), String(opened)).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("to a part of it is noticed, however much is left", async () => {
    for (const codec of [open, sealed, zstd, sealedZstd]) {
      const content = Buffer.from("0123456789".repeat(20));
      const id = await codec.idOf(content);
      const bytes = await codec.encode(id, content);
      for (let length = 0; length < bytes.length; length++)
        await expect(codec.decode(id, bytes.subarray(0, length)), `${length} bytes`).rejects.toMatchObject({
          fault: "damaged",
        });
    }
  });

  test("to another blob that is whole is noticed, with a key and without", async () => {
    for (const codec of [open, sealed]) {
      const [one, two] = [Buffer.from("one"), Buffer.from("two")];
      const other = await codec.encode(await codec.idOf(two), two);
      await expect(codec.decode(await codec.idOf(one), other)).rejects.toMatchObject({ fault: "damaged" });
    }
  });

  test.each([
    { named: "deflate", encoding: 1, bomb: deflateRawSync(Buffer.alloc(50_000_000)) },
    { named: "zstd", encoding: 2, bomb: zstdCompressSync(Buffer.alloc(50_000_000)) },
  ])("to one of $named that grows without end is noticed at the length that it claims", async (one) => {
    const { encoding, bomb } = one;
    const id = await open.idOf(Buffer.alloc(100));
    await expect(open.decode(id, stored({ encoding, length: 100, payload: bomb }))).rejects.toMatchObject({
      fault: "damaged",
      message: `blob ${id} is damaged: it cannot be decompressed`,
    });
    await expect(
      open.decode(id, stored({ encoding, length: MAX_CONTENT_BYTES + 1, payload: bomb })),
    ).rejects.toMatchObject({ message: `blob ${id} is damaged: it claims ${MAX_CONTENT_BYTES + 1} bytes` });
  });

  test("to a frame of zstd whose reader would need gigabytes is noticed before they are taken", async () => {
    const content = Buffer.from("content");
    const id = await open.idOf(content);
    // Magic, no flags, the window as a power of two, and one last block that is not compressed.
    const frame = (windowLog: number) => {
      const block = Buffer.alloc(3);
      block.writeUIntLE((content.length << 3) | 1, 0, 3);
      return Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3]), block, content]);
    };
    const blob = (windowLog: number) => stored({ encoding: 2, length: content.length, payload: frame(windowLog) });
    expect((await open.decode(id, blob(21))).equals(content)).toBe(true);
    for (const windowLog of [24, 27, 31])
      await expect(open.decode(id, blob(windowLog)), `${windowLog}`).rejects.toMatchObject({
        message: `blob ${id} is damaged: it cannot be decompressed`,
      });
  });
});

describe("a key", () => {
  test("that was the current one before still opens its blobs", async () => {
    const before = createCodec({ keys: [OLD], domain: "p1" });
    const id = await before.idOf(text);
    const bytes = await before.encode(id, text);
    expect((await createCodec({ keys: [KEY, OLD], domain: "p1" }).decode(id, bytes)).equals(text)).toBe(true);
    await expect(sealed.decode(id, bytes)).rejects.toMatchObject({
      fault: "unreadable",
      message: expect.stringMatching(/is sealed under the key [0-9a-f]{16}, which this node does not have$/) as string,
    });
    await expect(open.decode(id, bytes)).rejects.toMatchObject({ fault: "unreadable" });
  });

  test("that was set later leaves blobs from before readable", async () => {
    const id = await open.idOf(text);
    expect((await sealed.decode(id, await open.encode(id, text))).equals(text)).toBe(true);
  });

  test("of another domain does not open a blob of this one", async () => {
    const id = await sealed.idOf(text);
    const bytes = await sealed.encode(id, text);
    await expect(createCodec({ keys: [KEY], domain: "p2" }).decode(id, bytes)).rejects.toMatchObject({
      fault: "damaged",
    });
  });

  test("is not needed to take what another node has cut from its files, because the name proves the content", async () => {
    const id = await sealed.idOf(text);
    const plain = stored({ encoding: 0, length: text.length, payload: text });
    expect((await sealed.decode(id, plain)).equals(text)).toBe(true);
    const other = Buffer.from(text);
    other[0] = 0;
    await expect(
      sealed.decode(id, stored({ encoding: 0, length: other.length, payload: other })),
    ).rejects.toMatchObject({ fault: "damaged" });
  });
});

test("an encoding or a seal of a later version is unreadable, not damaged", async () => {
  const id = await open.idOf(text);
  await expect(open.decode(id, stored({ encoding: 3, length: 1, payload: text }))).rejects.toMatchObject({
    fault: "unreadable",
    message: `blob ${id} has encoding 3, which this version does not know: a later version has written it, so upgrade this node`,
  });
  const later = stored({ encoding: 0, length: 1, payload: text });
  later[5] = 2;
  await expect(open.decode(id, later)).rejects.toMatchObject({ fault: "unreadable" });
});
