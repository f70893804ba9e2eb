/** Commands in a sandbox through its own envd, as the SDK runs them: a memory image does not contain what Docker starts. */

import { request } from "node:http";

const ENVD_PORT = 49_983;
const TOKEN = "a".repeat(32);

export interface Command {
  readonly user?: string;
  readonly pty?: boolean;
  readonly envs?: Readonly<Record<string, string>>;
}

interface Event {
  start?: { pid: number };
  data?: { stdout?: string; stderr?: string; pty?: string };
  end?: { exitCode?: number; status?: string; error?: string };
}

export interface Finished {
  readonly code: number;
  readonly output: string;
  /** Absent after exit 0. */
  readonly error?: string;
}

/** Runs a command to its end. */
export async function command(address: string, text: string, options: Command = {}): Promise<Finished> {
  const output: string[] = [];
  const end = await follow(address, text, options, (event) => {
    for (const part of [event.data?.stdout, event.data?.stderr, event.data?.pty])
      if (part !== undefined) output.push(Buffer.from(part, "base64").toString("utf8"));
    return event.end === undefined ? undefined : event.end;
  });
  const error = end.error === undefined ? {} : { error: end.error };
  return { code: end.exitCode ?? 0, output: output.join("").trim(), ...error };
}

/** Starts a command that continues after its stream is left; resolves to its process id inside the sandbox. */
export async function background(address: string, text: string, options: Command = {}): Promise<number> {
  return follow(address, text, options, (event) => event.start?.pid);
}

/** Makes a watch; later requests ask it for the events that it has seen. */
export async function createWatcher(address: string, path: string): Promise<string> {
  const { watcherId = "" } = await unary<{ watcherId?: string }>(address, "CreateWatcher", { path, recursive: false });
  return watcherId;
}

export async function watchedNames(address: string, watcherId: string): Promise<string[]> {
  const { events = [] } = await unary<{ events?: { name: string }[] }>(address, "GetWatcherEvents", { watcherId });
  return events.map(({ name }) => name);
}

async function unary<T>(address: string, method: string, message: unknown): Promise<T> {
  const response = await fetch(`http://${address}:${ENVD_PORT}/filesystem.Filesystem/${method}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Basic ${btoa("user:")}`, "X-Access-Token": TOKEN },
    body: JSON.stringify(message),
  });
  if (!response.ok) throw new Error(`${method}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

function follow<T>(
  address: string,
  text: string,
  { user = "user", pty = false, envs = {} }: Command,
  found: (event: Event) => T | undefined,
): Promise<T> {
  const message = {
    process: { cmd: "/bin/bash", args: ["-c", text], envs },
    stdin: false,
    ...(pty ? { pty: { size: { cols: 80, rows: 24 } } } : {}),
  };
  return new Promise((resolve, reject) => {
    const call = request(
      {
        host: address,
        port: ENVD_PORT,
        method: "POST",
        path: "/process.Process/Start",
        agent: false,
        headers: {
          "Content-Type": "application/connect+json",
          Authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}`,
          "X-Access-Token": TOKEN,
        },
      },
      (response) => {
        let rest = Buffer.alloc(0);
        response.on("data", (chunk: Buffer) => {
          rest = Buffer.concat([rest, chunk]);
          while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
            const length = rest.readUInt32BE(1);
            const frame = JSON.parse(rest.subarray(5, 5 + length).toString("utf8")) as { event?: Event };
            rest = rest.subarray(5 + length);
            const result = frame.event === undefined ? undefined : found(frame.event);
            if (result === undefined) continue;
            resolve(result);
            call.destroy();
          }
        });
        response.once("error", reject);
        response.once("close", () => reject(new Error(`the stream ended, status ${response.statusCode}`)));
      },
    );
    call.once("error", reject);
    call.end(envelope(message));
  });
}

function envelope(message: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}
