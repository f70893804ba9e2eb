/** Single files of a sandbox by envd's /files: streamed both ways, so that a large one takes no memory. */

import { createReadStream } from "node:fs";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { within } from "../../shared/program/deadline.ts";
import { refusal, unreached } from "../api/client.ts";
import type { Context } from "../context.ts";
import { EXIT, Failure } from "../failure.ts";
import { writeWhole } from "./part.ts";
import type { Inside } from "./sandbox.ts";

/** A file of unknown size may take any time: only silence is limited. */
const LONGEST_SILENCE_MS = 60_000;
/** What a write fails of where a disk, a quota or a limit of size is reached. */
const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

export interface Transfer {
  readonly context: Context;
  readonly inside: Inside;
  readonly user: string | undefined;
  /** Counts bytes as they pass. */
  readonly passed: (bytes: number) => void;
}

export async function upload(transfer: Transfer, from: string, to: string): Promise<void> {
  const { watch, signal } = silence(transfer);
  const file = createReadStream(from);
  const counting = watch();
  // The reader's end is part of the pipeline, which the request's body ends.
  let problem: NodeJS.ErrnoException | undefined;
  const onProblem = (error: NodeJS.ErrnoException) => {
    problem = error;
    counting.destroy(error);
  };
  const body = Readable.toWeb(file.on("error", onProblem).pipe(counting));
  const response = await request(transfer, to, {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body: body as never,
    duplex: "half",
    signal,
  }).catch((cause: unknown) => {
    // The request ends with its body: the platform was reached all the same.
    throw problem === undefined ? cause : unreadable(from, problem);
  });
  await response.arrayBuffer();
}

function unreadable(path: string, cause: NodeJS.ErrnoException): Failure {
  const exitCode = cause.code === "ENOENT" ? EXIT.notFound : EXIT.failed;
  return new Failure(`${path} cannot be read: ${cause.code ?? cause.message}`, { exitCode, cause });
}

/** The file is there when all of it has come, with these permission bits; until then what was there stays. */
export async function download(transfer: Transfer, from: string, to: string, mode: number): Promise<void> {
  const { watch, signal } = silence(transfer);
  const response = await request(transfer, from, { method: "GET", headers: {}, signal });
  const source = bodyOf(response);
  try {
    await broken(from, "copied", () => writeWhole(to, mode, (file) => pipeline(source, watch(), file, { signal })));
  } catch (cause) {
    const { code = "" } = cause as NodeJS.ErrnoException;
    // The kernel names no file for these.
    if (!FULL.has(code)) throw cause;
    throw new Failure(`${to} cannot be written: ${code}`, { cause });
  } finally {
    source.destroy();
  }
}

function bodyOf({ body }: Response): Readable {
  const source = body === null ? Readable.from([]) : Readable.fromWeb(body as never);
  // It may break or be interrupted before anything reads it: what reads it then says so.
  return source.on("error", () => undefined);
}

/** @throws {Failure} the connection broke before the end */
async function broken(path: string, done: "copied" | "read", work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new Failure(`the connection broke while ${path} was ${done}`, {
      cause,
      wayOut: "run the same command again",
    });
  }
}

/** Reads a file that is not larger than so many bytes. @throws {Failure} it is */
export async function readSmall(transfer: Transfer, path: string, mostBytes: number): Promise<Buffer> {
  const { watch, signal } = silence(transfer);
  const response = await request(transfer, path, { method: "GET", headers: {}, signal });
  const chunks: Buffer[] = [];
  let bytes = 0;
  const take = async (passing: AsyncIterable<Buffer>) => {
    for await (const chunk of passing) {
      bytes += chunk.length;
      if (bytes > mostBytes) throw new Failure(`${path} has more than ${mostBytes} bytes`);
      chunks.push(chunk);
    }
  };
  await broken(path, "read", () => pipeline(bodyOf(response), watch(), take, { signal }));
  return Buffer.concat(chunks);
}

export async function writeSmall(transfer: Transfer, path: string, data: Buffer): Promise<void> {
  await within(LONGEST_SILENCE_MS, async (limit) => {
    const response = await request(transfer, path, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: data as never,
      signal: AbortSignal.any([limit, transfer.context.signal]),
    });
    await response.arrayBuffer();
  });
}

interface Init {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: never;
  readonly duplex?: "half";
  readonly signal: AbortSignal;
}

async function request({ context, inside, user }: Transfer, path: string, init: Init): Promise<Response> {
  const query = new URLSearchParams({ path, ...(user === undefined ? {} : { username: user }) });
  let response: Response;
  try {
    const headers = { ...inside.headers, ...init.headers };
    response = await fetch(`${inside.place.url}/files?${query.toString()}`, { ...init, headers, redirect: "error" });
  } catch (cause) {
    if (context.signal.aborted) throw context.signal.reason;
    throw unreached(inside.place.url, cause, LONGEST_SILENCE_MS);
  }
  if (response.ok) return response;
  throw refusal(response.status, await response.text().catch(() => ""));
}

/** Ends a transfer in which no byte has passed for too long. */
function silence({ context, passed }: Transfer) {
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(new DOMException("no byte passed", "TimeoutError")), LONGEST_SILENCE_MS);
  timer.unref();
  const watch = () =>
    new Transform({
      transform(chunk: Buffer, _encoding, done) {
        timer.refresh();
        passed(chunk.length);
        done(null, chunk);
      },
      destroy(error, done) {
        clearTimeout(timer);
        done(error);
      },
    });
  return { watch, signal: AbortSignal.any([silent.signal, context.signal]) };
}
