/**
 * Programs in a build's container through its envd, over Connect with JSON, exactly as a
 * client's commands run. Whatever the other side sends is hostile: frames are bounded, and a text is only a text.
 */

import { type ClientRequest, request } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AppError } from "../../../shared/http/errors.ts";

const PORT = 49983;
/** envd sends at most 32 KiB of output in a frame; base64 and JSON come on top. */
const LARGEST_FRAME = 1024 * 1024;
const LARGEST_ANSWER = 64 * 1024;
const END_STREAM = 0x02;

/** Where an envd is, and the token it was told. */
export interface EnvdUser {
  readonly address: string;
  readonly accessToken: string;
}

interface Program {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly user: string;
  readonly cwd: string;
  readonly envs: Readonly<Record<string, string>>;
  readonly tag?: string;
}

export type Output = (stream: "stdout" | "stderr", bytes: Buffer) => void;

/** `status` as Go says it: `exit status 1`, `signal: killed`. */
export interface Ended {
  readonly exitCode: number;
  readonly status: string;
}

/** It did not start, or its stream broke: `code` and text as the other side's Connect error. */
export class RpcError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RpcError";
    this.code = code;
  }
}

export interface Running {
  readonly ended: Promise<Ended>;
}

export interface Processes {
  /** Resolves once it runs. The signal ends the following, not the program. @throws {RpcError} */
  start(at: EnvdUser, program: Program, more: { onOutput: Output; signal: AbortSignal }): Promise<Running>;
  /** Writes a file as root. @throws {AppError} */
  upload(at: EnvdUser, path: string, content: Readable, signal: AbortSignal): Promise<void>;
}

interface Frame {
  readonly event?: {
    readonly start?: unknown;
    readonly data?: { readonly stdout?: string; readonly stderr?: string };
    readonly end?: { readonly exitCode?: number; readonly exited?: boolean; readonly status?: string };
  };
  readonly error?: { readonly code?: string; readonly message?: string };
}

export function envdProcesses(port = PORT): Processes {
  return {
    start: (at, program, more) => start(at, program, { ...more, port }),
    upload: (at, path, content, signal) => upload(at, path, { content, signal, port }),
  };
}

function start(
  { address, accessToken }: EnvdUser,
  { cmd, args, user, cwd, envs, tag }: Program,
  { onOutput, signal, port }: { onOutput: Output; signal: AbortSignal; port: number },
): Promise<Running> {
  const message = { process: { cmd, args, cwd, envs }, stdin: false, ...(tag === undefined ? {} : { tag }) };
  return new Promise((resolve, reject) => {
    let end: Ended | undefined;
    let finish: (ended: Ended) => void = () => undefined;
    let fail: (error: unknown) => void = reject;
    const ended = new Promise<Ended>((resolveEnd, rejectEnd) => {
      finish = resolveEnd;
      fail = (error) => {
        const reason: unknown = signal.aborted ? signal.reason : error;
        reject(reason);
        rejectEnd(reason);
      };
    });
    // Who starts it and does not wait for its end is told by `reject`.
    ended.catch(() => undefined);
    const call = request({
      host: address,
      port,
      method: "POST",
      path: "/process.Process/Start",
      agent: false,
      signal,
      headers: {
        "content-type": "application/connect+json",
        "connect-protocol-version": "1",
        authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}`,
        "x-access-token": accessToken,
      },
    });
    call.once("error", (cause) => fail(lost(cause)));
    call.once("response", (response) => {
      const frames = createFrames(({ event = {}, error }, last) => {
        if (error !== undefined) return fail(new RpcError(error.code ?? "unknown", error.message ?? "no reason given"));
        if (event.start !== undefined) resolve({ ended });
        tellOutput(event, onOutput);
        end = endOf(event) ?? end;
        if (last && end !== undefined) finish(end);
      });
      response.on("data", (chunk: Buffer) => {
        try {
          frames(chunk);
        } catch (error) {
          call.destroy(error as Error);
        }
      });
      response.once("error", (cause) => fail(lost(cause)));
      response.once("close", () => fail(lost(new Error(`status ${response.statusCode}`))));
    });
    call.end(envelope(message));
  });
}

type Event = NonNullable<Frame["event"]>;

function tellOutput({ data = {} }: Event, onOutput: Output): void {
  for (const stream of ["stdout", "stderr"] as const) {
    const bytes = data[stream];
    if (typeof bytes === "string") onOutput(stream, Buffer.from(bytes, "base64"));
  }
}

function endOf({ end }: Event): Ended | undefined {
  if (end === undefined) return undefined;
  const { exitCode = 0, exited = false, status = "" } = end;
  return { exitCode: exited ? exitCode : -1, status };
}

function lost(cause: unknown): RpcError {
  return new RpcError("unavailable", "the connection to the build's container broke", { cause });
}

function createFrames(onFrame: (frame: Frame, last: boolean) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= 5) {
      const length = rest.readUInt32BE(1);
      if (length > LARGEST_FRAME) throw new Error("a frame is too long");
      if (rest.length < 5 + length) return;
      const flags = rest.readUInt8(0);
      const frame = JSON.parse(rest.subarray(5, 5 + length).toString("utf8")) as Frame;
      rest = rest.subarray(5 + length);
      onFrame(frame, (flags & END_STREAM) !== 0);
    }
  };
}

function envelope(message: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}

async function upload(
  { address, accessToken }: EnvdUser,
  path: string,
  { content, signal, port }: { content: Readable; signal: AbortSignal; port: number },
): Promise<void> {
  const call = request({
    host: address,
    port,
    method: "POST",
    path: `/files?username=root&path=${encodeURIComponent(path)}`,
    agent: false,
    signal,
    headers: { "content-type": "application/octet-stream", "x-access-token": accessToken },
  });
  const answered = answer(call);
  answered.catch(() => undefined);
  try {
    await pipeline(content, call);
  } catch (error) {
    // What is wrong with the content counts; without that, what the other side had to say.
    if (error instanceof AppError) throw error;
    await answered;
    throw error;
  }
  await answered;
}

function answer(call: ClientRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(new AppError("unavailable", "the files could not be sent into the build's container", { cause }));
    call.once("error", fail);
    call.once("close", () => fail(new Error("closed")));
    call.once("response", (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        if (text.length < LARGEST_ANSWER) text += chunk.toString("utf8");
      });
      response.once("error", fail);
      response.once("end", () => {
        if (response.statusCode === 200) return resolve();
        if (response.statusCode === 507)
          return reject(new AppError("no_space", "the build's container has no space left for the files"));
        fail(new Error(`status ${response.statusCode}: ${text.slice(0, 500)}`));
      });
    });
  });
}
