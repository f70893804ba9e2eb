/** The console's screen of a sandbox: what it takes of what a program of the sandbox has sent. */

import { describe, expect, test } from "vitest";
import { portAddress } from "../../../../console/src/sandbox/ports/port-address.ts";
import { sizeOf } from "../../../../console/src/sandbox/screen/picture.ts";
import { passwordsOf } from "../../../../console/src/sandbox/screen/scripts.ts";
import { pageFile } from "../page-files.ts";

const { outcomeOf } = await pageFile<{
  readonly outcomeOf: (
    messages: AsyncIterable<unknown>,
    mostBytes: number,
  ) => Promise<{ readonly exitCode: number; readonly output: Uint8Array; readonly errors: string }>;
}>("sandbox/screen/outcome.ts");

/** The beginning of a PNG of this size. */
function png(width: number, height: number): Uint8Array {
  const bytes = Buffer.from("89504e470d0a1a0a0000000d494844520000000000000000080600000000000000", "hex");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

test("a picture of the screen has the size that its header says", () => {
  expect(sizeOf(png(1024, 768))).toEqual({ width: 1024, height: 768 });
  expect(sizeOf(Buffer.concat([Buffer.alloc(7), png(1280, 720)]).subarray(7))).toEqual({ width: 1280, height: 720 });
});

test.each<[string, Uint8Array]>([
  ["is empty", new Uint8Array()],
  ["is text", Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")],
  ["ends within its header", png(1024, 768).subarray(0, 20)],
  ["is a JPEG", Buffer.concat([Buffer.from("ffd8ffe000104a464946", "hex"), Buffer.alloc(40)])],
  ["begins with another part than its header", Buffer.from(png(1, 1)).fill("IDAT", 12, 16)],
  ["has no height", png(1024, 0)],
  ["would take gigabytes of the browser", png(100_000, 100_000)],
  ["is one pixel larger than what is drawn", png(4096, 4097)],
])("a picture that %s is not drawn", (_what, bytes) => {
  expect(() => sizeOf(bytes)).toThrow(/^(what )?the sandbox has sent/);
});

describe("the outcome of a program in a sandbox", () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const outcome = (messages: readonly unknown[], mostBytes = 100) =>
    outcomeOf(
      (async function* () {
        yield* messages;
      })(),
      mostBytes,
    );

  test("has what it printed, in its order, and the status with which it ended", async () => {
    const { exitCode, output, errors } = await outcome([
      { event: { start: { pid: 7 } } },
      { event: { data: { stdout: base64("one ") } } },
      { event: { keepalive: {} } },
      { event: { data: { stderr: base64("a warning") } } },
      { event: { data: { stdout: base64("two") } } },
      { event: { end: { exitCode: 3, exited: true } } },
    ]);
    expect([exitCode, Buffer.from(output).toString(), errors]).toEqual([3, "one two", "a warning"]);
  });

  test("has the status 0 where envd leaves the field out", async () => {
    expect((await outcome([{ event: { end: { exited: true } } }])).exitCode).toBe(0);
  });

  test("is a failure when the program prints more than is read, and when the stream ends before the program", async () => {
    const much = { event: { data: { stdout: base64("x".repeat(60)) } } };
    await expect(outcome([much, much, { event: { end: {} } }])).rejects.toThrow("more than 100 bytes");
    await expect(outcome([much])).rejects.toThrow("the connection to the sandbox was lost");
  });

  test("keeps the end of what a program says of errors, however much that is", async () => {
    const { errors } = await outcome([
      { event: { data: { stderr: base64("y".repeat(5_000)) } } },
      { event: { data: { stderr: base64("the reason") } } },
      { event: { end: { exitCode: 1 } } },
    ]);
    expect([errors.length, errors.endsWith("the reason")]).toEqual([4_096, true]);
  });
});

test("passwords are two lines of eight letters and digits, and nothing else that a sandbox prints", () => {
  expect(passwordsOf("abcdefgh\nabcd2345\n")).toEqual({ takes: "abcdefgh", watches: "abcd2345" });
  for (const other of [
    "",
    "abcdefgh\n",
    "abcdefgh\nabcd2345\nmore\n",
    "<b>efgh>\nabcd2345\n",
    "a\nabcdefgh\nabcd2345\n",
  ])
    expect(() => passwordsOf(other)).toThrow("printed no passwords");
});

test("a port of a sandbox has a host name of its own, where the platform has a domain", () => {
  const at = (domain: string | null) => portAddress({ sandboxID: "isb1", domain }, 6090, "https:");
  expect(at("sbx.example.org")).toBe("https://6090-isb1.sbx.example.org");
  expect(at(null)).toBe(undefined);
});
