/**
 * Writes a file that comes piece by piece beside its place, and puts it there at the end, so that no half of it stays on any ending.
 * A later file removes what a killed process has left.
 */

import { randomBytes } from "node:crypto";
import { constants, createWriteStream, openSync, rmSync, type WriteStream } from "node:fs";
import { access, chmod, chown, lstat, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EXIT, Failure } from "../failure.ts";

const PART = /^\.svc-part-[0-9a-f]{16}$/;
/** From the last write to a part until it counts as left: no download that goes on stands still for so long. */
const LEFT_MS = 3_600_000;
/** The folders in which this process has looked for what others left. */
const looked = new Set<string>();

type Write = (file: WriteStream) => Promise<void>;

/**
 * A file that is there already keeps its owner, and a link to it stays one. A pipe or a device is written to as it is, and so is a
 * file in a folder that takes no other one.
 *
 * @param mode permission bits of the file
 * @param write fills the file and ends it
 */
export async function writeWhole(path: string, mode: number, write: Write): Promise<void> {
  const present = await stat(path).catch(() => undefined);
  if (present !== undefined && !present.isFile()) return write(createWriteStream(path));
  const place = present === undefined ? path : await realpath(path);
  if (present !== undefined) await access(place, constants.W_OK);
  const part = openPart(dirname(place));
  if (part.file === undefined) {
    if (present === undefined)
      throw new Failure(`${path} cannot be written: ${part.problem}`, { exitCode: part.exitCode });
    await write(createWriteStream(place));
    return chmod(place, mode);
  }
  const remove = () => rmSync(part.name, { force: true });
  // A second signal ends the process at once, and so does the failure of another file.
  process.on("exit", remove);
  try {
    await removeLeft(dirname(place), part.name);
    await write(part.file);
    if (present !== undefined) await chown(part.name, present.uid, present.gid).catch(() => undefined);
    await chmod(part.name, mode);
    await rename(part.name, place);
  } finally {
    remove();
    process.off("exit", remove);
  }
}

/**
 * Removes the parts of processes that were killed. Their age is measured by the new part, because the folder's clock may be that of
 * another machine. Should a process live all the same, its file fails, and no half of it stays.
 */
async function removeLeft(folder: string, part: string): Promise<void> {
  if (looked.has(folder)) return;
  looked.add(folder);
  try {
    const { mtimeMs, uid } = await lstat(part);
    for (const name of await readdir(folder)) {
      if (!PART.test(name)) continue;
      // Another process may remove the same.
      const found = await lstat(join(folder, name)).catch(() => undefined);
      const isLeft = found?.isFile() === true && found.uid === uid && mtimeMs - found.mtimeMs > LEFT_MS;
      if (isLeft) await rm(join(folder, name), { force: true }).catch(() => undefined);
    }
  } catch {
    // The folder may not be readable: the copy does not depend on it.
  }
}

interface Part {
  readonly name: string;
  readonly file?: WriteStream;
  readonly problem: string;
  readonly exitCode: number;
}

/** Makes the file before it returns: one that is made behind an ending would stay. */
function openPart(folder: string): Part {
  const name = join(folder, `.svc-part-${randomBytes(8).toString("hex")}`);
  try {
    return { name, file: createWriteStream(name, { fd: openSync(name, "wx", 0o600) }), problem: "", exitCode: 0 };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { name, problem: code ?? message, exitCode: code === "ENOENT" ? EXIT.notFound : EXIT.failed };
  }
}
