/** The orchestrator as a process of its own, built as it is installed, which a test kills and starts again on the same database. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type DatabaseChoice, newDatabase, type TestDatabase } from "../store/databases.ts";
import { ADMIN_TOKEN, NODE_KEY } from "./cluster.ts";

const root = join(import.meta.dirname, "../../..");

interface MortalChoice extends Pick<DatabaseChoice, "server"> {
  /** Another one, whose program and database this one uses too, and which stops after it. */
  readonly beside?: MortalOrchestrator;
  /** A database of the test's own, which the test removes, in place of a new one. */
  readonly database?: TestDatabase;
}

export interface MortalOrchestrator {
  /** Where the program is. */
  readonly folder: string;
  readonly url: string;
  readonly pid: number | undefined;
  readonly database: TestDatabase;
  /** SIGKILL, and a new process at once. Resolves when the new one listens. */
  killAndStart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startMortalOrchestrator(
  settings: Readonly<Record<string, string>>,
  { beside, database: given, ...choice }: MortalChoice = {},
): Promise<MortalOrchestrator> {
  const folder = beside?.folder ?? buildOrchestrator();
  const database = beside?.database ?? given ?? (await newDatabase({ folder, ...choice }));
  const first = await start("0");
  const { url } = first;
  let { child } = first;

  async function start(port: string): Promise<{ child: ChildProcess; url: string }> {
    const started = spawn(process.execPath, [join(folder, "orchestrator.js")], {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        PATH: process.env["PATH"],
        ...(database.place.startsWith("/") ? { SVC_DATABASE: database.place } : { DATABASE_URL: database.place }),
        SVC_ADMIN_TOKEN: ADMIN_TOKEN,
        SVC_NODE_KEY: NODE_KEY,
        SVC_SEED: "test-seed-0000000001",
        SVC_ENCRYPTION_KEY: "test-encryption-key-1",
        SVC_API_PORT: port,
        SVC_EDGE_PORT: "0",
        ...settings,
      },
    });
    // A test that is given up while it starts the orchestrator has nothing to stop.
    const kill = () => void started.kill("SIGKILL");
    process.once("exit", kill);
    started.once("exit", () => process.off("exit", kill));
    const seen: string[] = [];
    for await (const line of createInterface({ input: started.stdout })) {
      seen.push(line);
      const entry = JSON.parse(line) as { readonly msg?: string; readonly url?: string };
      if (entry.msg !== "orchestrator started" || entry.url === undefined) continue;
      // Nobody reads on: the pipe must not fill.
      started.stdout.resume();
      return { child: started, url: entry.url };
    }
    throw new Error(`the orchestrator ended instead of starting:\n${seen.join("\n")}`);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  return {
    folder,
    url,
    get pid() {
      return child.pid;
    },
    database,
    async killAndStart() {
      await end("SIGKILL");
      ({ child } = await start(new URL(url).port));
    },
    async stop() {
      await end("SIGKILL");
      if (beside !== undefined) return;
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the folder with the program. */
function buildOrchestrator(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-mortal-"));
  execFileSync(process.execPath, ["--import", "tsx", "scripts/build.ts", "--to", folder, "orchestrator"], {
    cwd: root,
    stdio: "inherit",
  });
  return folder;
}
