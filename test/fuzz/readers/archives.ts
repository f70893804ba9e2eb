/** Fuzzes the readers of archives that clients upload: the files of a COPY step, and images as OCI layouts. */

import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { gunzipSync, gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { engineArchive, IMAGE_LIMITS } from "../../../agent/builds/images/oci-archive.ts";
import { type Blob, chooseImage } from "../../../agent/builds/images/oci-layout.ts";
import { cleanArchive } from "../../../agent/builds/steps/archive.ts";
import { ARCHIVE_LIMITS, createArchiveCheck } from "../../../agent/builds/steps/archive-rules.ts";
import { archiveKind } from "../../../orchestrator/builds/uploads/archive-head.ts";
import { archiveOf, layoutOf } from "../../support/images/saved-image.ts";
import { tarOf } from "../../support/images/tar.ts";
import { untarred } from "../../support/images/untarred.ts";
import { must, type Reader, unlessRefused, unlessRefusedLater } from "../reader.ts";

const MOST_BYTES = 1_000_000;
const LIMITS = { ...ARCHIVE_LIMITS, entries: 50, bytes: MOST_BYTES };

/**
 * Repairs the checksums of blocks that look like headers: without that, the reader would refuse nearly every mutation
 * unread.
 */
export function withChecksums(archive: Buffer): Buffer {
  const repaired = Buffer.from(archive);
  for (let at = 0; at + 512 <= repaired.length; at += 512) {
    const block = repaired.subarray(at, at + 512);
    if (block.toString("latin1", 257, 262) !== "ustar") continue;
    block.fill(" ", 148, 156);
    block.write(
      `${block
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, "0")}\0 `,
      148,
    );
  }
  return repaired;
}

function entries(): Promise<Buffer> {
  const made = pack();
  // The same time in every run: otherwise a finding could not be reproduced.
  const mtime = new Date(0);
  made.entry({ name: "a/", type: "directory", mtime });
  made.entry({ name: "a/b.txt", mode: 0o4755, mtime }, "content");
  made.entry({ name: "a/link", type: "symlink", linkname: "../b", mtime });
  made.entry({ name: "a/hard", type: "link", linkname: "a/b.txt", mtime });
  made.entry({ name: `${"long/".repeat(30)}name`, mtime }, "x");
  made.finalize();
  return buffer(made);
}

const layer = () => tarOf({ "etc/hello": "world" });
const digest = (content: Buffer) => createHash("sha256").update(content).digest("hex");

function image() {
  const layers = [layer()];
  const config = {
    os: "linux",
    architecture: "amd64",
    rootfs: { type: "layers", diff_ids: layers.map((one) => `sha256:${digest(one)}`) },
  };
  return layoutOf({ config: Buffer.from(JSON.stringify(config)), layers });
}

const wanted = { ref: undefined, architecture: "amd64" };
const TAR_WORDS = ["../", "/", "..", "\0", "2", "1", "5", "L", "K", "x", "g", "7777777", "ustar\0", "./"];

export const archives: readonly Reader[] = [
  {
    name: "archive-head",
    promise: "never throws; an archive of the tests is one",
    seeds: async () => [await entries(), gzipSync(await entries())],
    words: TAR_WORDS,
    longest: 6_000,
    share: 8_000,
    check: (input) => void archiveKind(input),
  },
  {
    name: "copy-archive",
    promise:
      "fails with its own error only; what is passed on is a tar of plain entries, below its directory and not behind a link",
    seeds: async () => [await entries(), gzipSync(await entries()), tarOf({ a: "b" })],
    words: TAR_WORDS,
    longest: 12_000,
    share: 1_500,
    async check(given, random) {
      const input = random.below(4) === 0 ? given : withChecksums(given);
      const check = createArchiveCheck({ limits: LIMITS, keepSetuid: false });
      const output = await unlessRefusedLater(["bad_request"], () =>
        buffer(cleanArchive(Readable.from([input]), check)),
      );
      if (output === undefined) return;
      must(output.length <= MOST_BYTES * 2, `${output.length} bytes were passed on`);
      const links: string[] = [];
      for (const name of (await untarred(output)).keys()) {
        const parts = name.replace(/\/$/, "").split("/");
        must(
          !name.startsWith("/") && !parts.includes("..") && !name.includes("\0"),
          `the entry '${name}' was passed on`,
        );
        must(!links.some((link) => name.startsWith(`${link}/`)), `'${name}' lies behind a link`);
      }
    },
  },
  {
    name: "oci-archive",
    promise: "fails with its own error only; what is passed on has the digests in its names and one list at its end",
    seeds: async () => [await archiveOf(image()), gzipSync(await archiveOf(image()))],
    words: [...TAR_WORDS, "sha256:", '"', "blobs/sha256/", "index.json"],
    longest: 12_000,
    share: 800,
    async check(given, random) {
      const input = random.below(4) === 0 ? given : withChecksums(given);
      const limits = { ...IMAGE_LIMITS, entries: 50, bytes: MOST_BYTES };
      const output = await unlessRefusedLater(["bad_request"], () =>
        buffer(engineArchive(Readable.from([input]), { ...wanted, name: "svc/from:x", limits })),
      );
      if (output === undefined) return;
      const files = [...(await untarred(output))];
      must(files.at(-1)?.[0] === "manifest.json", "the list is not at the end");
      for (const [name, content] of files.slice(0, -1))
        must(name === `blobs/sha256/${digest(content)}`, `'${name}' has another content`);
    },
  },
  {
    name: "oci-layout",
    promise: "throws its own error only; the parts of the image are parts of the archive",
    seeds: () => {
      const { files } = image();
      return [Buffer.from(JSON.stringify([...files].map(([name, content]) => [name, content.toString("latin1")])))];
    },
    words: ["null", "[]", "{}", '"', "sha256:", "-1", "1e99", "__proto__", "manifests", "linux", "arm64"],
    longest: 4_000,
    share: 15_000,
    check(input, random) {
      const { files, manifest } = image();
      const blobs = new Map<string, Blob>();
      for (const [name, content] of files) {
        const packing = content[0] === 0x1f ? "gzip" : "none";
        const unpacked = packing === "gzip" ? digest(gunzipSync(content)) : digest(content);
        blobs.set(name.slice(-64), { size: content.length, packing, unpacked, problem: undefined, content });
      }
      // One description is a mutation of all of them, stored under a name that belongs to another content.
      const index = Buffer.from(JSON.stringify({ manifests: [manifest] }));
      const changed = random.below(2) === 0 ? input : mixed(index, input, random.below(index.length));
      const chosen = unlessRefused(["bad_request"], () => chooseImage(changed, blobs, wanted));
      for (const part of chosen === undefined ? [] : [chosen.config, ...chosen.layers])
        must(/^[0-9a-f]{64}$/.test(part) && blobs.has(part), `the part ${part} is not in the archive`);
    },
  },
];

function mixed(one: Buffer, other: Buffer, at: number): Buffer {
  return Buffer.concat([one.subarray(0, at), other.subarray(0, 3), one.subarray(at)]);
}
