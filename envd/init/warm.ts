/** POST /warm: runs the code of a sandbox's first commands once, so that it is compiled before the first client. */

import { rm } from "node:fs/promises";
import { Agent, request as httpRequest } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { collectGarbage } from "../runtime/idle-memory.ts";

export interface WarmOptions {
  readonly port: number;
  /** A program that ends at once, in any image. */
  readonly program: string;
  readonly directory: string;
  /** For an envd without identity: then POST /init runs too, and is undone. */
  readonly controlToken: string | undefined;
}

/** Number of runs: V8 compiles a function well after some calls. */
const ROUNDS = 6;
const LIMIT_MS = 5_000;
/** V8 sweeps in small steps after a collection; frozen in between, the first request would do the rest. */
const SWEEP_MS = 25;
const TOKEN = "warm";
/** Placeholder ids, as long as real ones: their files are made here, and the start only overwrites them. */
const NO_ID = "-".repeat(20);
const NO_EXECUTION = "-".repeat(36);
/** Not every image has this shell. */
const SHELL = { cmd: "/bin/bash", args: ["--noprofile", "--norc", "-c", ":"] };

/** Best effort: a failed step has run its code as far as it can. */
export async function warmUp({ port, program, directory, controlToken }: WarmOptions): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const signal = AbortSignal.timeout(LIMIT_MS);
  const path = `${directory}/.svc-warm`;
  const post = (url: string, contentType: string, body: Buffer) =>
    call({ agent, port, signal, method: "POST", url, contentType, body, controlToken });
  const stream = (method: string, message: unknown) =>
    post(`/process.Process/${method}`, "application/connect+json", envelope(message));
  const unary = (method: string, message: unknown) =>
    post(`/${method}`, "application/json", Buffer.from(JSON.stringify(message)));
  const init = async (settings: unknown) => {
    if (controlToken !== undefined) await unary("init", settings);
  };
  try {
    for (let round = 0; round < ROUNDS && !signal.aborted; round += 1) {
      await init({
        accessToken: TOKEN,
        envVars: { WARM: "1" },
        defaultUser: "root",
        sandboxId: NO_ID,
        templateId: NO_ID,
        executionId: NO_EXECUTION,
      });
      for (const process of [{ cmd: program, args: ["-l", "-c", "warm"] }, SHELL])
        await stream("Start", { process: { ...process, envs: { WARM: "1" }, cwd: "/" }, stdin: false });
      await unary("process.Process/List", {});
      await post(`/files?path=${path}`, "application/octet-stream", Buffer.from("warm"));
      await call({
        agent,
        port,
        signal,
        method: "GET",
        url: `/files?path=${path}`,
        contentType: "",
        body: Buffer.alloc(0),
        controlToken,
      });
      await unary("filesystem.Filesystem/Stat", { path });
      await unary("filesystem.Filesystem/ListDir", { path: directory, depth: 1 });
    }
  } finally {
    // Undoes the calls of /init above; otherwise the new envd would accept their token.
    await init({});
    agent.destroy();
    await rm(path, { force: true });
  }
  // Garbage of these runs would be frozen with the sandbox: a megabyte or two in each.
  collectGarbage();
  await delay(SWEEP_MS);
}

interface WarmUpCall {
  readonly agent: Agent;
  readonly port: number;
  readonly signal: AbortSignal;
  readonly method: string;
  readonly url: string;
  readonly contentType: string;
  readonly body: Buffer;
  readonly controlToken: string | undefined;
}

function call({ agent, port, signal, method, url, contentType, body, controlToken }: WarmUpCall): Promise<void> {
  return new Promise((resolve) => {
    // As root, which every image has.
    const headers = {
      "Content-Type": contentType,
      "Content-Length": body.length,
      Authorization: "Basic cm9vdDo=",
      "X-Access-Token": TOKEN,
      ...(controlToken === undefined ? {} : { "Svc-Node-Token": controlToken }),
    };
    const request = httpRequest({ agent, port, signal, method, path: url, headers, host: "127.0.0.1" }, (response) => {
      response.resume();
      response.once("close", resolve);
    });
    request.once("error", () => resolve());
    request.end(body);
  });
}

function envelope(message: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}
