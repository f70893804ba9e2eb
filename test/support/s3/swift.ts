/** A real S3 service for tests: OpenStack Swift of Debian's package python3-swift, which a test kills and starts again. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, open, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { AwsV4Signer } from "aws4fetch";
import { request } from "undici";
import type { S3Place, S3Secrets } from "../../../agent/blobs/stores/s3-requests.ts";
import { freePort, listening } from "../peers/listening.ts";

/** The server's user: it needs no rights, and its files belong to nobody else. */
const NOBODY = 65_534;
/** The proxy, and the three servers behind it. */
const PORTS = 4;
const READY_MS = 120_000;

export const secrets: S3Secrets = { accessKeyId: "test:tester", secretAccessKey: "testing" };

export interface Swift {
  readonly endpoint: string;
  /** Makes an empty bucket, and gives the place of a store in it. */
  bucket(name: string): Promise<S3Place>;
  /** Ends all its processes at once. What it had answered stays. */
  kill(): Promise<void>;
  /** After `kill`, at the same address with the same objects. */
  start(): Promise<void>;
  /** The process of one of its servers, to stop or end it. */
  pidOf(server: "account" | "container" | "object" | "proxy"): number;
  /** Ends it, and removes what it held. */
  stop(): Promise<void>;
}

/**
 * Starts a server of its own. Throws when the machine has no python3-swift.
 * @param place a directory on a file system with user xattrs, for a test that fills it; a new one if absent
 * @param reserve free space below which it takes no objects, in bytes or as `1%`
 */
export async function startSwift({
  place,
  reserve = "1%",
}: {
  readonly place?: string;
  readonly reserve?: string;
} = {}): Promise<Swift> {
  const folder = place ?? (await mkdtemp(join(tmpdir(), "svc-swift-")));
  const asRoot = process.getuid?.() === 0;
  if (asRoot) await chown(folder, NOBODY, NOBODY);
  const port = await freePorts();
  const endpoint = `http://127.0.0.1:${port}`;
  const state = { server: undefined as ChildProcess | undefined, pids: [] as number[] };

  const start = async () => {
    // The server's user may not be able to read the checkout.
    const script = await open(join(import.meta.dirname, "service.py"), "r");
    const server = spawn("/usr/bin/python3", ["-", folder, String(port), secrets.accessKeyId], {
      cwd: folder,
      stdio: [script.fd, "pipe", "pipe"],
      env: {
        PATH: "/usr/bin:/bin",
        HOME: folder,
        SWIFT_RESERVE: reserve,
        SWIFT_SECRET: secrets.secretAccessKey,
      },
      ...(asRoot ? { uid: NOBODY, gid: NOBODY } : {}),
    });
    state.server = server;
    await script.close();
    const complaints: string[] = [];
    server.stderr?.on("data", (data: Buffer) => complaints.push(data.toString("utf8")));
    const ready = await Promise.race([
      firstLine(server),
      once(server, "exit").then(() => ""),
      once(AbortSignal.timeout(READY_MS), "abort").then(() => ""),
    ]);
    const pids = ready.split(" ").slice(1).map(Number);
    if (!ready.startsWith("ready ")) {
      server.kill("SIGKILL");
      const log = await readFile(join(folder, "proxy.log"), "utf8").catch(() => "");
      throw new Error(
        `Swift did not start: ${complaints.join("").trim() || log || "no reason"}; scripts/host/test/swift installs it`,
      );
    }
    state.pids = pids;
  };

  const kill = async () => {
    const { server } = state;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    // The others end with it.
    server.kill("SIGKILL");
    await ended;
  };

  await start();
  return {
    endpoint,
    start,
    kill,
    async bucket(name) {
      const signer = new AwsV4Signer({
        ...secrets,
        service: "s3",
        region: "us-east-1",
        method: "PUT",
        url: `${endpoint}/${name}`,
      });
      const { headers } = await signer.sign();
      const { statusCode, body } = await request(`${endpoint}/${name}`, {
        method: "PUT",
        headers: Object.fromEntries(headers),
      });
      const text = await body.text();
      if (statusCode !== 200) throw new Error(`Swift did not make the bucket ${name}: ${statusCode} ${text}`);
      return { endpoint, bucket: name, prefix: "", region: "us-east-1" };
    },
    pidOf: (server) => state.pids[1 + ["account", "container", "object", "proxy"].indexOf(server)] ?? Number.NaN,
    async stop() {
      await kill();
      if (place === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

async function firstLine(server: ChildProcess): Promise<string> {
  if (server.stdout === null) return "";
  for await (const line of createInterface({ input: server.stdout })) return line;
  return "";
}

/** The first of as many free ports in a row as the servers need. */
async function freePorts(): Promise<number> {
  for (;;) {
    const first = await freePort();
    const taken = await Promise.all(
      Array.from({ length: PORTS - 1 }, (_, index) => {
        const server = createServer();
        return listening(server, "127.0.0.1", first + 1 + index).then(
          () => server.close() && false,
          () => true,
        );
      }),
    );
    if (!taken.includes(true)) return first;
  }
}
