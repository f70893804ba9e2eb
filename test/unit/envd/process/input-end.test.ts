import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type InputEnd, inputEnd } from "../../../../envd/process/input-end.ts";

/** More bytes than a pipe holds. */
const LARGE = Buffer.alloc(1_000_000, "x");

let directory: string;
let reader: number;
let end: InputEnd;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "input-end-"));
  const pipe = join(directory, "pipe");
  execFileSync("sh", ["-c", `mkfifo ${pipe}`]);
  reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  end = inputEnd(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
});
afterEach(() => {
  end.destroy();
  closeReader();
  rmSync(directory, { recursive: true });
});

function closeReader(): void {
  if (reader >= 0) closeSync(reader);
  reader = -1;
}

test("data that fits into the pipe is written at once, also when the input closes right after", async () => {
  const written = end.write(Buffer.from("small"));
  end.destroy();
  expect(await written).toBe("taken");
});

test("a write that the input's close interrupts is lost", async () => {
  const written = end.write(LARGE);
  const behind = end.write(Buffer.from("behind it"));
  end.destroy();
  expect([await written, await behind]).toEqual(["lost", "lost"]);
});

test("a write whose reader goes away is lost", async () => {
  const written = end.write(LARGE);
  closeReader();
  expect(await written).toBe("lost");
  expect(await end.write(Buffer.from("after"))).toBe("lost");
});

test("a slow reader gets all data, then the end", async () => {
  const written = end.write(LARGE);
  end.end();
  let total = 0;
  const buffer = Buffer.alloc(64 * 1024);
  for (;;) {
    const size = readSome(buffer);
    if (size === 0) break;
    if (size > 0) total += size;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect([await written, total]).toEqual(["taken", LARGE.length]);
});

test("a write after the end is lost", async () => {
  end.end();
  expect(await end.write(Buffer.from("late"))).toBe("lost");
});

/** Returns -1 while the pipe is empty. */
function readSome(buffer: Buffer): number {
  try {
    return readSync(reader, buffer);
  } catch {
    return -1;
  }
}
