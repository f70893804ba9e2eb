/** Packs and unpacks tars by the host's own program, so that large ones take no time of this process. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Files get this process's owner. @throws what the stream throws, or an Error with what `tar` printed */
export async function untar(archive: Readable, directory: string, signal: AbortSignal): Promise<void> {
  // It reads behind the archive's end mark, up to the stream's end: what ends before that looks like a broken pipe.
  const options = ["--extract", "--ignore-zeros", "--no-same-owner", "--file=-", `--directory=${directory}`];
  const child = spawn("tar", options, { stdio: ["pipe", "ignore", "pipe"] });
  const ended = endOf(child);
  try {
    await pipeline(archive, child.stdin, { signal });
  } catch (error) {
    child.kill("SIGKILL");
    const failure = await ended;
    signal.throwIfAborted();
    // A program that ends early breaks the pipe, and its own words are the reason.
    throw failure?.by === "itself" ? failure.error : error;
  }
  const failure = await ended;
  if (failure !== undefined) throw failure.error;
}

/** Gives what is in the directory to a reader. @throws what the reader throws, or an Error with what `tar` printed */
export async function tarred(
  directory: string,
  read: (archive: Readable) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const child = spawn("tar", ["--create", "--file=-", `--directory=${directory}`, "."], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = endOf(child);
  const stop = () => child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  // Read from the first moment on: when the program ends, Node throws away what nobody has begun to read.
  const archive = child.stdout.pipe(new PassThrough());
  child.stdout.once("error", (error) => archive.destroy(error));
  try {
    await read(archive);
  } finally {
    signal.removeEventListener("abort", stop);
    // What the reader has left would keep the program waiting.
    child.stdout.destroy();
    archive.destroy();
  }
  const failure = await ended;
  signal.throwIfAborted();
  if (failure !== undefined) throw failure.error;
}

interface Failure {
  readonly by: "itself" | "a signal";
  readonly error: Error;
}

async function endOf(child: ChildProcess): Promise<Failure | undefined> {
  const complaint: Buffer[] = [];
  child.stderr?.on("data", (data: Buffer) => complaint.push(data));
  try {
    const [code, by] = (await once(child, "close")) as [number | null, string | null];
    if (code === 0) return undefined;
    const words = Buffer.concat(complaint).toString("utf8").trim().slice(0, 1_000);
    return { by: code === null ? "a signal" : "itself", error: new Error(`tar ended with ${code ?? by}: ${words}`) };
  } catch (error) {
    return { by: "itself", error: new Error("the program tar cannot be run", { cause: error }) };
  }
}
