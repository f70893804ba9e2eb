/**
 * Hostile archives for COPY, over the real upload and build: the build refuses each with a reason, and the host stays as it
 * was.
 */

import { createHash } from "node:crypto";
import { lstat, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tarOf } from "../../support/images/tar.ts";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { fresh, removeAfterwards } from "../../support/platform/templates.ts";

const platform = openPlatform();

/** A directory of the host that each of these archives tries to reach. */
let canary = "";
beforeAll(async () => {
  canary = await mkdtemp(join(tmpdir(), "svc-canary-"));
  await writeFile(join(canary, "file"), "untouched", { mode: 0o600 });
});
afterAll(() => rm(canary, { recursive: true }));

type Entry = Partial<Header> & { readonly name: string; readonly content?: string | Buffer };

async function archived(entries: readonly Entry[]): Promise<Buffer> {
  const made = pack();
  for (const { content, ...header } of entries) made.entry(header, content ?? "");
  made.finalize();
  return gzipSync(await buffer(made));
}

interface Requested {
  readonly templateID: string;
  readonly buildID: string;
}

interface Status {
  readonly status: string;
  readonly reason?: { readonly message: string; readonly step?: string };
}

/** An archive of a hundred thousand entries with a thousand names. */
function crowded(): Buffer {
  const thousand = tarOf(Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`f${index}`, ""])));
  // The entries without the two blocks that end an archive.
  const entries = thousand.subarray(0, -1024);
  return gzipSync(Buffer.concat([...Array.from({ length: 100 }, () => entries), Buffer.alloc(1024)]));
}

async function built(archive: Buffer): Promise<Status> {
  const requested = await api(platform, "POST", "/v3/templates", { body: { name: fresh("archive"), memoryMB: 512 } });
  const { templateID, buildID } = requested.json as Requested;
  removeAfterwards(platform, templateID);
  const filesHash = createHash("sha256").update(archive).digest("hex");
  const upload = await api(platform, "GET", `/templates/${templateID}/files/${filesHash}`);
  const { url, headers = {} } = upload.json as { url: string; headers?: Record<string, string> };
  const put = await fetch(url, { method: "PUT", headers, body: new Uint8Array(archive) });
  expect(put.ok, `${put.status} ${await put.text()}`).toBe(true);
  const steps = [{ type: "COPY", args: [".", "/", "root", ""], filesHash }];
  const body = { fromTemplate: "base", steps };
  expect((await api(platform, "POST", `/v2/templates/${templateID}/builds/${buildID}`, { body })).status).toBe(202);
  const status = async () =>
    (await api(platform, "GET", `/templates/${templateID}/builds/${buildID}/status`)).json as Status;
  await expect.poll(async () => (await status()).status, { timeout: 200_000, interval: 100 }).not.toBe("building");
  return status();
}

const HOSTILE: readonly [what: string, archive: () => Buffer | Promise<Buffer>, reason: RegExp][] = [
  ["an absolute path", () => archived([{ name: `${canary}/file`, content: "x" }]), /absolute path/],
  ["a way out", () => archived([{ name: `${"../".repeat(12)}${canary.slice(1)}/file`, content: "x" }]), /leads out/],
  [
    "a file behind its link",
    () =>
      archived([
        { name: "a", type: "symlink", linkname: canary },
        { name: "a/file", content: "x" },
      ]),
    /symbolic link/,
  ],
  [
    "a hard link out, and content for it",
    () =>
      archived([
        { name: "a", type: "link", linkname: `${canary}/file` },
        { name: "a", content: "x" },
      ]),
    /absolute/,
  ],
  ["a device", () => archived([{ name: "sda", type: "block-device", devmajor: 8, devminor: 0 }]), /device/],
  ["100 000 entries", crowded, /more than \d+ entries/],
  ["a bomb", () => archived([{ name: "zeros", content: Buffer.alloc(80_000_000) }]), /times its size/],
];

test.each(HOSTILE)("%s is refused with a reason", async (_what, archive, reason) => {
  const before = await readdir(platform.paths.state);
  expect(await built(await archive())).toMatchObject({
    status: "error",
    reason: { message: expect.stringMatching(reason), step: "1" },
  });
  expect(await readdir(canary)).toEqual(["file"]);
  expect(await readFile(join(canary, "file"), "utf8")).toBe("untouched");
  const { mode, nlink, uid } = await lstat(join(canary, "file"));
  expect([mode & 0o7777, nlink, uid]).toEqual([0o600, 1, process.getuid?.()]);
  expect(await readdir(platform.paths.state)).toEqual(before);
});
