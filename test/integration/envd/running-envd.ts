/** A real envd of this checkout on a free port, with its own users and home directories; needs root, as in a sandbox. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll } from "vitest";
import { startEnvd } from "../../../envd/app.ts";
import { Filesystem } from "../../../shared/envd-rpc/gen/filesystem_pb.js";
import { Process } from "../../../shared/envd-rpc/gen/process_pb.js";

const SOURCES = new URL("../../../envd/exec/", import.meta.url).pathname;

/** The ids of an ordinary user. */
const USER = { uid: 1000, gid: 1000 };

export interface RunningEnvd {
  readonly url: string;
  readonly port: number;
  /** The home directory of `user`. */
  readonly home: string;
  /** The directory that holds this envd's own `etc` and `run`. */
  readonly root: string;
  stop(): Promise<void>;
}

export interface EnvdOptions {
  readonly controlToken?: string;
  readonly now?: () => number;
}

export async function runEnvd({ controlToken, now = Date.now }: EnvdOptions = {}): Promise<RunningEnvd> {
  const helper = compiledHelper();
  const root = mkdtempSync(join(tmpdir(), "envd-"));
  chmodSync(root, 0o755);
  const home = join(root, "home/user");
  mkdirSync(join(root, "etc"), { recursive: true });
  mkdirSync(join(root, "run"));
  mkdirSync(home, { recursive: true });
  mkdirSync(join(root, "root"));
  chownSync(home, USER.uid, USER.gid);
  writeFileSync(join(root, "etc/passwd"), `root:x:0:0::${root}/root:/bin/bash\nuser:x:1000:1000::${home}:/bin/bash\n`);
  writeFileSync(join(root, "etc/group"), "root:x:0:\nuser:x:1000:\nextra:x:4242:user\n");
  const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const envd = await startEnvd({ port: 0, controlToken, path, language: undefined, helper, root, now });
  const stop = async () => {
    await envd.stop();
    rmSync(root, { recursive: true, force: true });
  };
  return { url: `http://127.0.0.1:${envd.port}`, port: envd.port, home, root, stop };
}

/** Compiles the helper once for each version of its source, and returns its path. */
function compiledHelper(): string {
  const files = readdirSync(SOURCES)
    .filter((name) => /\.[ch]$/.test(name))
    .toSorted();
  const hash = createHash("sha256");
  for (const name of files) hash.update(readFileSync(join(SOURCES, name)));
  const helper = join(tmpdir(), `svc-exec-${hash.digest("hex").slice(0, 16)}`);
  if (existsSync(helper)) return helper;
  const fresh = `${helper}.${process.pid}`;
  const units = files.filter((name) => name.endsWith(".c")).map((name) => join(SOURCES, name));
  execFileSync("cc", ["-static", "-Os", "-s", "-o", fresh, ...units]);
  renameSync(fresh, helper);
  return helper;
}

export interface Clients {
  readonly process: Client<typeof Process>;
  readonly filesystem: Client<typeof Filesystem>;
}

export function clientsOf(url: string, useBinaryFormat = false): Clients {
  const transport: Transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1", useBinaryFormat });
  return { process: createClient(Process, transport), filesystem: createClient(Filesystem, transport) };
}

export interface SharedEnvd {
  readonly envd: Omit<RunningEnvd, "stop">;
  readonly clients: Clients;
}

/** Runs one envd for all tests of a file; those tests must not depend on each other. */
export function sharedEnvd(): SharedEnvd {
  let envd: RunningEnvd;
  let clients: Clients;
  beforeAll(async () => {
    envd = await runEnvd();
    clients = clientsOf(envd.url);
  });
  afterAll(() => envd.stop());
  return {
    envd: {
      get url() {
        return envd.url;
      },
      get port() {
        return envd.port;
      },
      get home() {
        return envd.home;
      },
      get root() {
        return envd.root;
      },
    },
    clients: {
      get process() {
        return clients.process;
      },
      get filesystem() {
        return clients.filesystem;
      },
    },
  };
}

/** Request headers that name a user. */
export function as(user: string, more: Record<string, string> = {}): { headers: Record<string, string> } {
  return { headers: { authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}`, ...more } };
}
