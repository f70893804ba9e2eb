/** The places that a sandbox reaches, tried from inside with common programs. */

import { ALL_TRAFFIC, Sandbox, type SandboxNetworkOpts } from "e2b";
import { onTestFinished } from "vitest";
import { ADDRESS, PORT } from "../internet/plan.ts";
import { api, type Platform, type Reply } from "../platform/platform.ts";
import { ownSandbox } from "./sdk.ts";

export type Outcome = "ok" | "blocked" | "silence";

/** The deny list with every address, for policies that then allow some. */
export const NOTHING = [ALL_TRAFFIC];
/** curl's exit code when no answer came in time. */
const TIMED_OUT = 28;
const https = (where: string) => `https://${where}/`;
export const sandboxWith = (network?: SandboxNetworkOpts) => ownSandbox(network === undefined ? {} : { network });

/**
 * Sends a HEAD request to each URL, all at once: each is answered, refused at once, or neither within twenty seconds, because
 * the machine may be busy. curl does not check the certificate, because the test internet's authority signed it.
 */
export function reached(sandbox: Sandbox, ...urls: readonly string[]): Promise<readonly Outcome[]> {
  return outcomesOf(sandbox, urls, 20);
}

/** Does the same for URLs that are to get no answer at all, each for eight seconds. */
export function triedBriefly(sandbox: Sandbox, ...urls: readonly string[]): Promise<readonly Outcome[]> {
  return outcomesOf(sandbox, urls, 8);
}

async function outcomesOf(sandbox: Sandbox, urls: readonly string[], seconds: number): Promise<readonly Outcome[]> {
  const one = (url: string, index: number) => `(curl -skI -m ${seconds} -o /dev/null '${url}'; echo ${index} $?) &`;
  const { stdout } = await sandbox.commands.run(`${urls.map(one).join("\n")}\nwait`, { timeoutMs: 60_000 });
  const statuses = new Map(
    stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ").map(Number) as [number, number]),
  );
  return urls.map((_, index) => {
    const status = statuses.get(index);
    return status === 0 ? "ok" : status === TIMED_OUT ? "silence" : "blocked";
  });
}

/** Does the same as `reached` for hosts, with each host as a key of the result. */
export async function reach(sandbox: Sandbox, ...hosts: readonly string[]): Promise<Readonly<Record<string, Outcome>>> {
  const outcomes = await reached(sandbox, ...hosts.map(https));
  return Object.fromEntries(hosts.map((host, index) => [host, outcomes[index] ?? "silence"]));
}

/** An answer of a server of the test internet, which repeats the request. */
export interface Answer {
  readonly address: string;
  readonly port: number;
  readonly sni?: string;
  readonly host: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly httpVersion: string;
}

export async function ask(sandbox: Sandbox, url: string, options = "-k"): Promise<Answer> {
  const { stdout } = await sandbox.commands.run(`curl -sS -m 30 ${options} '${url}'`);
  return JSON.parse(stdout) as Answer;
}

/** Runs a Python program inside and resolves to its output, even when it fails. */
export async function python(sandbox: Sandbox, program: string, user = "user"): Promise<string> {
  const path = `/tmp/program-${Math.random().toString(36).slice(2)}.py`;
  await sandbox.files.write(path, program);
  const { stdout } = await sandbox.commands.run(`python3 ${path} 2>&1 || true`, { user, timeoutMs: 180_000 });
  return stdout.trim();
}

/** Whether a name resolves over UDP through an address and port that are not the node's resolver. */
export async function resolvesAt(sandbox: Sandbox, address: string, port: number = PORT.udpNames): Promise<boolean> {
  const command = `dig +short +time=15 +tries=1 -p ${port} @${address} google.example || true`;
  return (await sandbox.commands.run(command)).stdout.trim() === ADDRESS.google;
}

/** Connects to a server that speaks first, and resolves to its greeting and its answer. */
export function greeting(sandbox: Sandbox, host = "ssh.example"): Promise<string> {
  return python(
    sandbox,
    `import socket
s = socket.create_connection(("${host}", ${PORT.ssh}), 30); s.settimeout(30)
print(s.recv(200).decode().strip())
s.sendall(b"hello\\n")
print(s.recv(200).decode().strip())`,
  );
}

/** Tests a half-closed connection in both orders; see `streams.ts` of the test internet. */
export function halfClose(sandbox: Sandbox, host = "keys.example"): Promise<string> {
  return python(
    sandbox,
    `import socket
s = socket.create_connection(("${host}", ${PORT.halfClose}), 30); s.settimeout(30)
s.sendall(b"after-fin\\nhello"); s.shutdown(socket.SHUT_WR)
print(s.makefile().read().strip())
s = socket.create_connection(("${host}", ${PORT.halfClose}), 30); s.settimeout(30)
s.sendall(b"first-fin\\n"); print(s.makefile("rb").read().decode().strip())
s.sendall(b"x" * 100000); s.close()`,
  );
}

/** Opens a connection that stays, for tests of open flows; it records every 50 ms whether it still works. */
export async function keepConnection(sandbox: Sandbox, host: string, port: number): Promise<() => Promise<string>> {
  await sandbox.files.write(
    "/tmp/keep.py",
    `import socket, sys, time
def say(word):
  open("/tmp/kept", "w").write(word)
try:
  s = socket.create_connection(("${host}", ${port}), 15); s.settimeout(15)
  s.sendall(b"echo\\n")
  while True:
    s.sendall(b"x")
    if s.recv(1) == b"": raise OSError
    say("open")
    time.sleep(0.05)
except OSError as error:
  say("cut")`,
  );
  const handle = await sandbox.commands.run("python3 /tmp/keep.py", { background: true, timeoutMs: 0 });
  await handle.disconnect();
  return async () => (await sandbox.commands.run("cat /tmp/kept 2>/dev/null || true")).stdout;
}

/** Calls the route itself, for fields that the SDK does not send or show. */
export function putNetwork(platform: Platform, sandboxId: string, body: unknown, key?: string | null): Promise<Reply> {
  return api(platform, "PUT", `/sandboxes/${sandboxId}/network`, key === undefined ? { body } : { body, key });
}

/** Pauses the sandbox and resumes it from its kept memory. */
export async function pauseAndResume(sandbox: Sandbox): Promise<Sandbox> {
  await sandbox.pause();
  return Sandbox.connect(sandbox.sandboxId, { timeoutMs: 120_000 });
}

/** Makes a fork for a test, and kills it afterwards. */
export async function forkOf(sandbox: Sandbox): Promise<Sandbox> {
  const [copy] = await sandbox.fork();
  if (!(copy instanceof Sandbox)) throw copy ?? new Error("no fork");
  onTestFinished(async () => {
    await copy.kill();
  });
  return copy;
}
