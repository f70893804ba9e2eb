/** Makes a debug bundle: an archive of text files without secrets, for whoever helps. A part that fails or hangs leaves the others. */

import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { pack } from "tar-stream";
import { giveName } from "../base/appear.ts";
import { withDeadline } from "../base/deadline.ts";
import type { Part } from "./parts.ts";
import type { Redact } from "./redact.ts";

export interface Bundled {
  readonly name: string;
  readonly bytes: number;
  readonly seconds: number;
  /** Why it is not there. */
  readonly problem: string | undefined;
}

export interface BundleOptions {
  readonly parts: readonly Part[];
  readonly redact: Redact;
  /** The file is made in one step, for its owner alone. */
  readonly path: string;
  readonly onPart?: (part: Bundled) => void;
  /** Aborted: no further part is made, and there is no archive. */
  readonly signal?: AbortSignal;
}

export async function writeBundle(options: BundleOptions): Promise<readonly Bundled[]> {
  const { parts, redact, path, onPart, signal } = options;
  const archive = pack();
  // Between two entries nobody else listens.
  archive.on("error", () => undefined);
  // Two at once have a file each.
  const unfinished = `${path}.${randomBytes(6).toString("hex")}.new`;
  const written = pipeline(archive, createGzip(), createWriteStream(unfinished, { mode: 0o600, flags: "wx" }));
  let ofDisk: Error | undefined;
  // The first failure of the disk ends the archive; the parts see it at their next entry.
  written.catch((error: Error) => {
    ofDisk = error;
    archive.destroy(error);
  });
  const done: Bundled[] = [];
  try {
    for (const part of parts) {
      signal?.throwIfAborted();
      const { text, ...bundled } = await made(part, redact);
      await add(archive, bundled.problem === undefined ? part.name : `${part.name}.failed`, text);
      done.push(bundled);
      onPart?.(bundled);
    }
    await add(archive, "manifest.json", JSON.stringify(done, null, 2));
    archive.finalize();
    await written;
    await giveName(unfinished, path);
    return done;
  } catch (error) {
    // An archive that has ended says only that it has; the disk says why, and a moment later.
    await new Promise((resolve) => void setImmediate(resolve));
    const cause = ofDisk ?? error;
    archive.destroy();
    await written.catch(() => undefined);
    await rm(unfinished, { force: true });
    throw cause;
  }
}

async function made({ name, limitMs, make }: Part, redact: Redact): Promise<Bundled & { readonly text: string }> {
  const begun = performance.now();
  let problem: string | undefined;
  const found = await withDeadline(make(), limitMs).catch((error: unknown) => {
    problem = redact(error instanceof Error ? error.message : String(error));
    return problem;
  });
  const text = redact(found);
  const seconds = Math.round((performance.now() - begun) / 100) / 10;
  return { name, bytes: Buffer.byteLength(text), seconds, problem, text };
}

async function add(archive: ReturnType<typeof pack>, name: string, text: string): Promise<void> {
  const ended = new Promise<void>((resolve, reject) => {
    archive.once("error", reject);
    archive.entry({ name: `svc-debug/${name}`, mode: 0o600 }, text, (error) => {
      archive.off("error", reject);
      if (error === undefined || error === null) resolve();
      else reject(error);
    });
  });
  await ended;
}
