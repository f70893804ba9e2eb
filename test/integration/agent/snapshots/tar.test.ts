/** Archives that the host's own `tar` makes. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { tarred, untar } from "../../../../agent/snapshots/beyond/tar.ts";

test("an archive is whole for a reader that begins to read when the program has ended already", async () => {
  const folder = await mkdtemp(join(tmpdir(), "svc-tar-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await Promise.all([from, to].map((each) => mkdir(each)));
  await writeFile(join(from, "file"), "content");
  const { signal } = new AbortController();
  const read = async (archive: Parameters<typeof untar>[0]) => {
    await delay(300);
    await untar(archive, to, signal);
  };
  await tarred(from, read, signal);
  expect(await readFile(join(to, "file"), "utf8")).toBe("content");
});

test("an archive whose stream ends a while after its end mark, as Docker's does, is unpacked", async () => {
  const folder = await mkdtemp(join(tmpdir(), "svc-tar-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await Promise.all([from, to].map((each) => mkdir(each)));
  await writeFile(join(from, "file"), "content");
  const { signal } = new AbortController();
  const made: Buffer[] = [];
  await tarred(from, async (archive) => void made.push(await buffer(archive)), signal);
  const late = Readable.from(
    (async function* () {
      yield* made;
      await delay(300);
    })(),
  );
  await untar(late, to, signal);
  expect(await readFile(join(to, "file"), "utf8")).toBe("content");
});
