import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { boundaryOf, readParts } from "../../../../envd/files/multipart.ts";

interface Read {
  readonly name: string | undefined;
  readonly filename: string | undefined;
  readonly body: string;
}

// Yields three pieces at a time: a part may begin and end in the middle of a piece.
async function* cut(bytes: Buffer, size: number): AsyncGenerator<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  for (let at = 0; at < pieces.length; at += 3) yield pieces.slice(at, at + 3);
}

async function read(body: string | Buffer, size = 65_536, boundary = "XX"): Promise<Read[]> {
  const parts: Read[] = [];
  for await (const part of readParts(cut(Buffer.from(body), size), boundary)) {
    const pieces: Buffer[] = [];
    for await (const some of part.body) pieces.push(...some.map((piece) => Buffer.from(piece)));
    parts.push({ name: part.name, filename: part.filename, body: Buffer.concat(pieces).toString("latin1") });
  }
  return parts;
}

const part = (disposition: string, body: string) =>
  `--XX\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${body}\r\n`;

describe("multipart bodies", () => {
  test.each([1, 2, 3, 7, 65_536])("are the same however they are cut: %i bytes at a time", async (size) => {
    const body = `${part('name="file"; filename="d/ü.txt"', "one\r\n--X not a boundary")}${part('name="other"', "")}--XX--\r\n`;
    expect(await read(body, size)).toEqual([
      { name: "file", filename: "d/ü.txt", body: "one\r\n--X not a boundary" },
      { name: "other", filename: undefined, body: "" },
    ]);
  });

  test.each([1, 2, 3, 7, 65_536])("with two boundaries in a row are the same too: %i bytes at a time", async (size) => {
    const body = `--XX\r\n${part('name="x"', "y")}--XX--`;
    expect(await read(body, size)).toEqual([{ name: "x", filename: undefined, body: "y" }]);
  });

  test("any bytes come through whole", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 1, max: 40 }), async (bytes, size) => {
        const head = Buffer.from('--XX\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n');
        const body = Buffer.from(bytes);
        fc.pre(!body.includes("\r\n--XX"));
        const [only] = await read(Buffer.concat([head, body, Buffer.from("\r\n--XX--")]), size);
        expect(only?.body).toBe(body.toString("latin1"));
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['name="file"; filename="a\\"b.txt"', 'a"b.txt'],
    ["name=file; filename=plain.txt", "plain.txt"],
    ['name="file"; filename="/abs/dir/e.txt"', "/abs/dir/e.txt"],
    ["name=\"file\"; filename*=utf-8''%C3%BC.txt", "ü.txt"],
    ['name="file"; filename="_.txt"; filename*=UTF-8\'\'%C3%BC.txt', "ü.txt"],
    ['name="file"', undefined],
  ])("%s names %j", async (disposition, filename) => {
    const [only] = await read(`${part(disposition, "x")}--XX--`);
    expect([only?.name, only?.filename]).toEqual(["file", filename]);
  });

  test("a part without headers has no name", async () => {
    expect(await read("--XX\r\n\r\nbody\r\n--XX--")).toEqual([{ name: undefined, filename: undefined, body: "body" }]);
  });

  test("text before the first and after the last boundary is ignored", async () => {
    expect(await read(`preamble\r\n${part('name="a"', "x")}--XX--\r\nepilogue`)).toHaveLength(1);
  });

  test("a part that is not read is skipped", async () => {
    const names = [];
    for await (const { name } of readParts(
      cut(Buffer.from(`${part('name="a"', "x".repeat(99))}${part('name="b"', "y")}--XX--`), 5),
      "XX",
    ))
      names.push(name);
    expect(names).toEqual(["a", "b"]);
  });

  test.each([
    ["is read to its end", `${part('name="a"', "x")}--XX--\r\nbehind it`, () => undefined],
    ["is malformed", "--XXoops\r\n\r\n--XX--", () => undefined],
    [
      "is left in the middle of a part",
      `${part('name="a"', "x".repeat(99))}--XX--`,
      () => {
        throw new Error("full");
      },
    ],
  ])("that %s ends its source", async (_, body, onPart) => {
    let open = true;
    async function* source(): AsyncGenerator<readonly Buffer[]> {
      try {
        yield* cut(Buffer.from(body), 5);
        await new Promise(() => undefined);
      } finally {
        open = false;
      }
    }
    const reading = async () => {
      for await (const { body: pieces } of readParts(source(), "XX")) for await (const __ of pieces) onPart();
    };
    await reading().catch(() => undefined);
    expect(open).toBe(false);
  });

  test.each([
    ["nothing", ""],
    ["no last boundary", part('name="a"', "x")],
    ["an end within the headers", "--XX\r\nContent-Disp"],
    ["headers that never end", `--XX\r\nX: ${"a".repeat(20_000)}`],
    ["something else behind a boundary", "--XXoops\r\n\r\n--XX--"],
  ])("%s is malformed", async (_, body) => {
    await expect(read(body, 512)).rejects.toMatchObject({ code: "bad_request" });
  });
});

test.each([
  ["multipart/form-data; boundary=XX", "XX"],
  ['multipart/form-data; charset=utf-8; boundary="a b"', "a b"],
])("the boundary of %s is %j", (header, expected) => {
  expect(boundaryOf(header)).toBe(expected);
});

test("a content type without a boundary is refused", () => {
  expect(() => boundaryOf("multipart/form-data")).toThrow("without a boundary");
});
