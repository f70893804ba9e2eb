/** Programs of a build, started through a real envd and through servers that are no envd. */

import { createServer, type RequestListener, type Server } from "node:http";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type ExitStatus, envdProcesses, RpcError } from "../../../../agent/builds/steps/processes.ts";
import { listening } from "../../../support/peers/listening.ts";
import { type RunningEnvd, runEnvd } from "../../envd/running-envd.ts";

const AT = { address: "127.0.0.1", accessToken: "" };
const LIMIT = () => AbortSignal.timeout(60_000);

let envd: RunningEnvd;
beforeAll(async () => {
  envd = await runEnvd();
});
afterAll(() => envd.stop());

const program = (script: string, more: { readonly user?: string; readonly cwd?: string } = {}) => ({
  cmd: "/bin/sh",
  args: ["-c", script],
  user: "root",
  cwd: "/",
  envs: { GREETING: "hellö" },
  ...more,
});

async function run(
  script: string,
  more = {},
): Promise<ExitStatus & { readonly stdout: string; readonly stderr: string }> {
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const { ended } = await envdProcesses(envd.port).start(AT, program(script, more), {
    onOutput: (stream, bytes) => output[stream].push(bytes),
    signal: LIMIT(),
  });
  const end = await ended;
  return { ...end, stdout: Buffer.concat(output.stdout).toString(), stderr: Buffer.concat(output.stderr).toString() };
}

describe("a program of a build", () => {
  test("gets its variables, and its exit and its two output streams are reported", async () => {
    expect(await run('echo "$GREETING"; echo oh >&2; exit 3')).toEqual({
      exitCode: 3,
      status: "exit status 3",
      stdout: "hellö\n",
      stderr: "oh\n",
    });
    expect(await run("kill -9 $$")).toMatchObject({ exitCode: -1, status: "signal: killed" });
  });

  test("may write megabytes of output", async () => {
    const { stdout, exitCode } = await run("head -c 3000000 /dev/zero");
    expect([stdout.length, exitCode]).toEqual([3_000_000, 0]);
  });

  test("that cannot be started fails with envd's own error", async () => {
    await expect(run("true", { user: "nobody-here" })).rejects.toMatchObject({
      name: "RpcError",
      code: "unauthenticated",
      message: expect.stringContaining("nobody-here") as string,
    });
    await expect(run("true", { cwd: "/not/there" })).rejects.toMatchObject({
      name: "RpcError",
      code: "invalid_argument",
    });
  });

  test("continues when its follower leaves, and the follower gets the reason", async () => {
    const left = new AbortController();
    const processes = envdProcesses(envd.port);
    const file = `${envd.home}/left`;
    const script = `while [ ! -e ${file} ]; do sleep 0.05; done; echo went on > ${file}`;
    const { ended } = await processes.start(AT, program(script), { onOutput: () => undefined, signal: left.signal });
    const reason = new Error("left");
    left.abort(reason);
    await expect(ended).rejects.toBe(reason);
    await processes.upload(AT, file, Readable.from([Buffer.from("")]), LIMIT());
    await expect.poll(async () => (await run(`cat ${file}`)).stdout, { timeout: 30_000 }).toBe("went on\n");
  });
});

function envelope(flags: number, length: number, bytes: Buffer = Buffer.alloc(length)): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

/** A `ProcessEvent.start` with pid 1, and a message without any event. */
const STARTED = envelope(0, 6, Buffer.from([0x0a, 4, 0x0a, 2, 0x08, 1]));
const EMPTY = envelope(0, 0);

async function against(answer: RequestListener): Promise<unknown> {
  const server: Server = createServer(answer);
  const port = await listening(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const processes = envdProcesses(port);
  try {
    const { ended } = await processes.start(AT, program("true"), { onOutput: () => undefined, signal: LIMIT() });
    return await ended;
  } catch (error) {
    return error;
  }
}

const stream =
  (...pieces: readonly Buffer[]): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "application/connect+proto" });
    for (const piece of pieces) response.write(piece);
    response.end();
  };

const END = Buffer.from("{}");
const broke = { name: "RpcError", code: "unavailable", message: "the connection to the build's container broke" };

describe("a server that is not envd", () => {
  test.each<[string, RequestListener]>([
    ["ends before the program starts", stream(envelope(2, 2, END))],
    ["ends before the program does", stream(STARTED, EMPTY, envelope(2, 2, END))],
    ["ends without the last message", stream(STARTED)],
    ["ends within a message", stream(STARTED, envelope(0, 100, Buffer.alloc(3)))],
    ["announces a message that is too long", stream(STARTED, envelope(0, 0x7fffffff, Buffer.alloc(10)))],
    ["sends what is no message", stream(STARTED, envelope(0, 3, Buffer.from([0xff, 0xff, 0xff])))],
    [
      "closes the connection",
      (request) => {
        request.socket.destroy();
      },
    ],
  ])("that %s is reported as the loss of the program", async (_what, answer) => {
    const failure = await against(answer);
    expect(failure).toBeInstanceOf(RpcError);
    expect(failure).toMatchObject(broke);
  });

  test("the error of a server that is not envd is passed on, cut to 1 000 characters", async () => {
    const error = JSON.stringify({ error: { code: "not_found", message: "x".repeat(5_000) } });
    const failure = await against(stream(envelope(2, error.length, Buffer.from(error))));
    expect(failure).toMatchObject({ name: "RpcError", code: "not_found", message: "x".repeat(1_000) });
  });
});
