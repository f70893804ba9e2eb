/** `svc` in a real terminal: `sandbox connect` on a real envd behind a connection that a test cuts, and keys that are typed. */

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../support/cluster/cluster.ts";
import { sharedEnvd } from "../envd/running-envd.ts";
import { builtSvc, SLOW } from "./running-svc.ts";

const { envd } = sharedEnvd();
const POLL = { timeout: 60_000 };
let cluster: Cluster;
let way: Server;
const sockets = new Set<Socket>();
beforeAll(async () => {
  cluster = await startCluster();
  way = createServer((socket) => {
    const onward = connect(envd.port, "127.0.0.1");
    for (const one of [socket, onward]) {
      sockets.add(one);
      one.on("error", () => undefined).on("close", () => sockets.delete(one));
    }
    socket.pipe(onward).pipe(socket);
  });
  await new Promise<void>((resolve) => void way.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  way.close();
  cut();
  await cluster.stop();
});
const variables = () => ({
  SVC_API_URL: cluster.url,
  SVC_SANDBOX_URL: `http://127.0.0.1:${(way.address() as AddressInfo).port}`,
  SVC_API_KEY: cluster.key,
});
const svc = builtSvc(variables);

function cut(): void {
  for (const socket of sockets) socket.destroy();
}

interface Terminal {
  /** All that it has shown. */
  readonly shown: () => string;
  type(keys: string): void;
  readonly ended: Promise<number | null>;
}

/** Runs `svc` in a terminal of 100 columns and 30 lines. */
function open(words: readonly string[]): Terminal {
  const command = ["stty cols 100 rows 30;", "exec", process.execPath, join(svc.folder, "cli/main.js"), ...words];
  const child: ChildProcess = spawn("script", ["-qec", command.join(" "), "/dev/null"], {
    env: { PATH: process.env["PATH"], HOME: svc.folder, TERM: "xterm", SHELL: "/bin/sh", ...variables() },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let shown = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => void (shown += text));
  child.stdin?.on("error", () => undefined);
  return {
    shown: () => shown,
    type: (keys) => void child.stdin?.write(keys),
    ended: new Promise((resolve) => void child.once("close", resolve)),
  };
}

test(
  "a terminal has the size of the user's, passes bytes through, and ends with the shell's exit code",
  SLOW,
  async () => {
    const id = await svc.out(["sandbox", "create"]);
    const terminal = open(["sandbox", "connect", id]);
    terminal.type("stty size; printf '\\033[7mraw\\033[0m\\n'; exit 7\n");
    expect(await terminal.ended).toBe(7);
    expect(terminal.shown()).toContain("30 100");
    expect(terminal.shown()).toContain("\u001b[7mraw\u001b[0m");
  },
);

test("a terminal goes on with the same shell after a cut, and can be left and come back to", SLOW, async () => {
  const id = await svc.out(["sandbox", "create"]);
  const terminal = open(["sandbox", "connect", id]);
  terminal.type("kept=value-of-before; echo be'gun'\n");
  await expect.poll(terminal.shown, POLL).toContain("begun");
  cut();
  await expect.poll(terminal.shown, POLL).toMatch(/\r\n\[connected again\]\r\n/);
  terminal.type('echo "it is $kept"\n');
  await expect.poll(terminal.shown, POLL).toContain("it is value-of-before");
  terminal.type("~.");
  expect(await terminal.ended).toBe(0);
  const [, pid = ""] = /--pid (\d+)/.exec(terminal.shown()) ?? [];
  expect(pid).not.toBe("");

  const again = open(["sandbox", "connect", id, "--pid", pid]);
  again.type('echo "still $kept"; exit\n');
  expect(await again.ended).toBe(0);
  expect(again.shown()).toContain("still value-of-before");
});

test.each([["auth login"], ["context add typed"]])(
  "a key that is typed to `svc %s` is not shown",
  SLOW,
  async (command) => {
    const terminal = open([...command.split(" "), "--api-url", cluster.url]);
    await expect.poll(terminal.shown, POLL).toContain(`API key for ${cluster.url} (not shown): `);
    terminal.type(`${cluster.key}\r`);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).not.toContain(cluster.key);
    expect(readFileSync(join(svc.folder, ".config/svc/config.toml"), "utf8")).toContain(cluster.key);
  },
);
