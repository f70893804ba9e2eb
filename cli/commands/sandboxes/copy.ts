/** Copies files and folders between this machine and a sandbox. */

import { mkdir, stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import { FileType } from "../../../shared/envd-rpc/gen/filesystem_pb.js";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import { download, type Transfer, upload } from "../../inside/files.ts";
import { enter, type Inside, insideFailure } from "../../inside/sandbox.ts";
import { type Leaf, lookThere, type Tree, treeHere, treeThere } from "../../inside/tree.ts";
import { escapeLine } from "../../output/escape.ts";
import { createProgress } from "../../output/progress.ts";

/** Files on their way at a time. */
const AT_ONCE = 4;
/** Names that one call of `chmod` gets. */
const NAMES_AT_ONCE = 200;
/** `dir/` takes a file under the file's own name, also where it is not there yet. */
const NAMES_FOLDER = /\/\.?$/;
/** Of `dir/.` the content is copied, as `docker cp` and `cp -r` do. */
const NAMES_CONTENT = /(?:^|\/)\.\/?$/;

export const copy: Action = async (context, { first: from, second: to }, { user }) => {
  const there = { from: remote(from), to: remote(to) };
  if ((there.from === undefined) === (there.to === undefined)) {
    throw usage("one of the two must be in a sandbox, and the other here", "a path in a sandbox is SANDBOX:PATH");
  }
  if (from === "-" || to === "-") {
    const wayOut =
      "a file: `svc sandbox exec SANDBOX -- cat PATH`; a folder: `-- tar -c PATH`, and into it `-- tar -x -C PATH`";
    throw usage(
      "cp copies no stream: '-' is neither standard input nor output",
      `${wayOut}; a file of that name is ./-`,
    );
  }
  const { sandboxID, path } = there.from ?? there.to ?? { sandboxID: "", path: "" };
  const inside = await enter(context, sandboxID);
  try {
    const job = { context, inside, user };
    await (there.from === undefined ? copyIn(job, from, path) : copyOut(job, path, to));
  } catch (error) {
    throw insideFailure(error, sandboxID);
  }
};

/** `ID:PATH`, also behind the `sandbox/` of `-o name`; a path here with a colon begins with `./` or `/`. */
function remote(text: string): { readonly sandboxID: string; readonly path: string } | undefined {
  const found = /^(?:sandbox\/)?([A-Za-z0-9][A-Za-z0-9-]*):(.*)$/s.exec(text);
  if (found === null) return undefined;
  const [, sandboxID = "", path = ""] = found;
  return { sandboxID, path: path === "" ? "." : path };
}

interface Job {
  readonly context: Context;
  readonly inside: Inside;
  readonly user: string | undefined;
}

async function copyIn(job: Job, from: string, to: string): Promise<void> {
  const source = await stat(from).catch((cause: unknown) => {
    throw new Failure(`${from} is not there, or cannot be read`, { exitCode: EXIT.notFound, cause });
  });
  const target = await lookThere(job.inside, to, job.user);
  const isFolder = target?.type === FileType.DIRECTORY;
  if (!source.isDirectory()) {
    const path = isFolder || NAMES_FOLDER.test(to) ? posix.join(to, basename(from)) : to;
    const files = [{ path: "", kind: "file", size: source.size, mode: source.mode & 0o777 }] as const;
    await transferAll(job, `${from} → ${path}`, files, (transfer) => upload(transfer, from, path));
    await makeExecutable(job, (source.mode & 0o111) === 0 ? [] : [path]);
    return;
  }
  if (target !== undefined && !isFolder) throw usage(`${to} is a file, and ${from} is a folder`);
  const path = isFolder && !NAMES_CONTENT.test(from) ? posix.join(to, basename(resolve(from))) : to;
  const tree = await treeHere(from);
  told(job, tree);
  await makeFolderThere(job, path);
  for (const { path: below, kind } of tree.leaves) {
    if (kind === "folder") await makeFolderThere(job, posix.join(path, below));
  }
  await transferAll(job, `${from} → ${path}`, tree.leaves, (transfer, { path: below }) =>
    upload(transfer, join(from, below), posix.join(path, below)),
  );
  const executable = tree.leaves.filter(({ kind, mode }) => kind === "file" && (mode & 0o111) !== 0);
  await makeExecutable(
    job,
    executable.map(({ path: below }) => posix.join(path, below)),
  );
}

async function makeFolderThere({ inside, user }: Job, path: string): Promise<void> {
  const found = await lookThere(inside, path, user);
  if (found?.type !== FileType.DIRECTORY) await inside.filesystem.makeDir({ path }, inside.as(user));
}

/** An upload makes a file without the right to run it. */
async function makeExecutable({ context, inside, user }: Job, paths: readonly string[]): Promise<void> {
  for (let from = 0; from < paths.length; from += NAMES_AT_ONCE) {
    const process = { cmd: "chmod", args: ["a+x", "--", ...paths.slice(from, from + NAMES_AT_ONCE)] };
    const events = inside.process.start({ process, stdin: false }, inside.as(user, { signal: context.signal }));
    let ended = 0;
    for await (const { event } of events) if (event?.event.case === "end") ended = event.event.value.exitCode;
    if (ended !== 0) context.out.note(`the right to run them could not be given: chmod ended with ${ended}`);
  }
}

async function copyOut(job: Job, from: string, to: string): Promise<void> {
  const source = await lookThere(job.inside, from, job.user);
  if (source === undefined) {
    throw new Failure(`${from} is not in sandbox ${job.inside.sandboxID}`, { exitCode: EXIT.notFound });
  }
  const target = await stat(to).catch(() => undefined);
  const isFolder = target?.isDirectory() === true;
  const name = safeName(source.name);
  if (source.type !== FileType.DIRECTORY) {
    const path = isFolder || NAMES_FOLDER.test(to) ? join(to, name) : to;
    const files = [{ path: "", kind: "file", size: Number(source.size), mode: source.mode & 0o777 }] as const;
    await transferAll(job, `${from} → ${path}`, files, (transfer, { mode }) =>
      download(transfer, from, path, modeHere(mode)),
    );
    return;
  }
  if (target !== undefined && !isFolder) throw usage(`${to} is a file, and ${from} is a folder`);
  const path = isFolder && !NAMES_CONTENT.test(from) ? join(to, name) : to;
  const tree = await treeThere(job.inside, from, job.user);
  told(job, tree);
  await mkdir(path, { recursive: true });
  for (const { path: below, kind } of tree.leaves) {
    if (kind === "folder") await mkdir(join(path, below), { recursive: true });
  }
  await transferAll(job, `${from} → ${path}`, tree.leaves, (transfer, { path: below, mode }) =>
    download(transfer, posix.join(source.path, below), join(path, below), modeHere(mode)),
  );
}

/** Who wrote the file can read and write it here, and run it where it can be run there. */
const modeHere = (mode: number) => 0o600 | (mode & 0o777);

function safeName(name: string): string {
  if (name === "/" || name === "") return "root";
  if (name === "." || name === ".." || /[/\0]/.test(name)) throw new Failure("the sandbox names a file that cannot be");
  return name;
}

function told({ context }: Job, { skipped }: Tree): void {
  for (const path of skipped) context.out.note(`not copied, because it is no file or folder: ${escapeLine(path)}`);
}

async function transferAll<L extends Pick<Leaf, "kind" | "size">>(
  { context, inside, user }: Job,
  what: string,
  leaves: readonly L[],
  one: (transfer: Transfer, leaf: L) => Promise<void>,
): Promise<void> {
  const files = leaves.filter(({ kind }) => kind === "file");
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const progress = createProgress(context, what, total);
  const transfer = { context, inside, user, passed: progress.passed };
  const left = [...files];
  async function worker(): Promise<void> {
    for (let leaf = left.shift(); leaf !== undefined; leaf = left.shift()) await one(transfer, leaf);
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  } finally {
    left.length = 0;
    progress.end();
  }
}
