/**
 * Programs in a build's container through its envd: envd's own Process service, called as a client's commands call it.
 * The envd is hostile: the client bounds its messages and never runs or parses its texts.
 */

import { type ClientRequest, request } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { defined } from "../../../shared/defined.ts";
import { Process, type ProcessEvent } from "../../../shared/envd-rpc/gen/process_pb.js";
import { AppError } from "../../../shared/http/errors.ts";

const PORT = 49983;
/** envd sends at most 32 KiB of output in a message. */
const LARGEST_MESSAGE = 1024 * 1024;
const LARGEST_ANSWER = 64 * 1024;
const LARGEST_REASON = 1_000;

/** Address of an envd, and the token that it accepts. */
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

/** `status` as Go writes it: `exit status 1`, `signal: killed`. */
export interface ExitStatus {
  readonly exitCode: number;
  readonly status: string;
}

/** A program did not start, or its stream broke. `code` and message are those of envd's Connect error. */
export class RpcError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RpcError";
    this.code = code;
  }
}

export interface RunningProgram {
  /** Inside the container, as envd says. */
  readonly pid: number;
  readonly ended: Promise<ExitStatus>;
}

export interface Processes {
  /** Resolves once the program runs. The signal stops following its output, not the program. @throws {RpcError} */
  start(at: EnvdUser, program: Program, more: { onOutput: Output; signal: AbortSignal }): Promise<RunningProgram>;
  /** Writes a file as root. @throws {AppError} */
  upload(at: EnvdUser, path: string, content: Readable, signal: AbortSignal): Promise<void>;
}

export function envdProcesses(port = PORT): Processes {
  return {
    start: (at, program, more) => start(at, program, { ...more, port }),
    upload: (at, path, content, signal) => upload(at, path, { content, signal, port }),
  };
}

async function start(
  at: EnvdUser,
  { cmd, args, user, cwd, envs, tag }: Program,
  { onOutput, signal, port }: { onOutput: Output; signal: AbortSignal; port: number },
): Promise<RunningProgram> {
  const process = { cmd, args: [...args], cwd, envs: { ...envs } };
  const headers = {
    authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}`,
    "x-access-token": at.accessToken,
  };
  const events = clientAt(at.address, port).start({ process, stdin: false, ...defined({ tag }) }, { headers, signal });
  const arriving = events[Symbol.asyncIterator]();
  const next = async (): Promise<Happened | undefined> => {
    try {
      const { done, value } = await arriving.next();
      return done === true ? undefined : (value.event?.event ?? { case: undefined });
    } catch (reason) {
      if (signal.aborted) throw signal.reason;
      throw toRpcError(reason);
    }
  };
  const pid = await untilStarted(next);
  const ended = follow(next, onOutput);
  // Without this a caller that does not wait for the end would cause an unhandled rejection.
  ended.catch(() => undefined);
  return { pid, ended };
}

type Happened = ProcessEvent["event"];
/** Undefined: the stream has ended as the protocol says. */
type Next = () => Promise<Happened | undefined>;

async function untilStarted(next: Next): Promise<number> {
  for (;;) {
    const event = await next();
    if (event === undefined) throw lost(new Error("the stream ended before the program started"));
    if (event.case === "start") return event.value.pid;
  }
}

async function follow(next: Next, onOutput: Output): Promise<ExitStatus> {
  let end: ExitStatus | undefined;
  for (let event = await next(); event !== undefined; event = await next()) {
    if (event.case === "data") {
      const { output } = event.value;
      if (output.case === "stdout" || output.case === "stderr") onOutput(output.case, Buffer.from(output.value));
    } else if (event.case === "end") {
      const { exitCode, exited, status } = event.value;
      end = { exitCode: exited ? exitCode : -1, status };
    }
  }
  if (end === undefined) throw lost(new Error("the stream ended before the program did"));
  return end;
}

// A new connection for each call: envd's timers expire while it is frozen, and would close an idle one at the thaw.
function clientAt(address: string, port: number): Client<typeof Process> {
  const transport = createConnectTransport({
    baseUrl: `http://${address}:${port}`,
    httpVersion: "1.1",
    nodeOptions: { agent: false },
    acceptCompression: [],
    readMaxBytes: LARGEST_MESSAGE,
  });
  return createClient(Process, transport);
}

/** An error that envd sent carries the headers of its answer; any other error comes from the connection. */
function toRpcError(reason: unknown): RpcError {
  const error = ConnectError.from(reason);
  if (!error.metadata.has("content-type")) return lost(reason);
  return new RpcError(codeToString(error.code), error.rawMessage.slice(0, LARGEST_REASON) || "no reason given", {
    cause: reason,
  });
}

function lost(cause: unknown): RpcError {
  return new RpcError("unavailable", "the connection to the build's container broke", { cause });
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
    // A fault of the content is the reason; without one, envd's answer says what failed.
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
