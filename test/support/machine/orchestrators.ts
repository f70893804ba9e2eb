/** Machines with an orchestrator and nothing else of the platform: each is a root directory with programs, settings and keys of its own. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { readInstance } from "../../../machine/base/instance.ts";
import { type Machine, thisMachine } from "../../../machine/base/this-machine.ts";
import { serviceUser } from "../../../machine/evidence/files.ts";
import { freePort } from "../peers/listening.ts";

const checkout = join(import.meta.dirname, "../../..");
export const TOKEN = "operators-token-of-this-test";
const headers = { "x-admin-token": TOKEN, "content-type": "application/json" };
/** Where `up` has never run there is no user for the orchestrator: then it is root. */
export const user = serviceUser() ?? { uid: 0, gid: 0 };

interface Started {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** A folder of machines, with the orchestrator of this checkout, which is built for it. */
export function createMachines() {
  const folder = mkdtempSync(join(tmpdir(), "svc-machine-"));
  // The orchestrator's user has to reach its directory.
  chmodSync(folder, 0o755);
  const tsx = join(checkout, "node_modules/tsx/dist/cli.mjs");
  execFileSync(process.execPath, [tsx, "scripts/build.ts", "--to", join(folder, "app"), "orchestrator", "console"], {
    cwd: checkout,
  });
  symlinkSync(process.execPath, join(folder, "app/node"));
  const read = (name: string): Machine => thisMachine(readInstance("", join(folder, name)));

  /** A machine with the programs, and nothing else until it is set up or restored. */
  function bare(name: string): Machine {
    const root = join(folder, name);
    for (const place of ["etc", "var/lib/svc/orchestrator", "run/svc", "var/log/svc", "opt/svc/app"])
      mkdirSync(join(root, place), { recursive: true });
    symlinkSync(join(folder, "app"), join(root, "opt/svc/app/current"));
    chownSync(join(root, "var/lib/svc/orchestrator"), user.uid, user.gid);
    return read(name);
  }

  return {
    folder,
    read,
    bare,

    /** @param own settings of the operator */
    async setUp(name: string, own: readonly string[] = []): Promise<Machine> {
      const { config, state } = bare(name).instance.places;
      mkdirSync(config);
      const key = (letter: string) => Buffer.alloc(32, letter).toString("base64url");
      const settings = [
        "SVC_API_HOST=127.0.0.1",
        `SVC_API_PORT=${await freePort()}`,
        "SVC_EDGE_HOST=127.0.0.1",
        `SVC_EDGE_PORT=${await freePort()}`,
        `SVC_DATABASE=${join(state, "orchestrator/svc.db")}`,
        `SVC_ADMIN_TOKEN_FILE=${join(config, "admin-token")}`,
        `SVC_NODE_KEY=${key("n")}`,
        `SVC_SEED=${key("s")}`,
        `SVC_ENCRYPTION_KEY=${key("e")}`,
      ];
      writeFileSync(join(config, "orchestrator.env"), `${settings.join("\n")}\n`, { mode: 0o640 });
      writeFileSync(join(config, "orchestrator.own.env"), own.map((line) => `${line}\n`).join(""), { mode: 0o640 });
      writeFileSync(join(config, "admin-token"), `${TOKEN}\n`, { mode: 0o600 });
      writeFileSync(join(config, "role"), "orchestrator\n");
      chownSync(join(config, "admin-token"), user.uid, user.gid);
      chmodSync(config, 0o755);
      return read(name);
    },

    /** The machine is lost, and another one that has nothing yet has its paths, as a second machine would. */
    inPlaceOf(name: string): Machine {
      renameSync(join(folder, name), join(folder, `${name}-lost`));
      return bare(name);
    },

    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Starts the orchestrator of the machine, and waits until it answers. */
export async function started({ instance }: Machine): Promise<Started> {
  const { app } = instance.places;
  const child: ChildProcess = spawn(join(app, "node"), [join(app, "orchestrator.js")], {
    env: { ...instance.environment("orchestrator"), SVC_LOG_LEVEL: "warn" },
    cwd: "/",
    stdio: "ignore",
    ...user,
  });
  const ended = new Promise<void>((resolve) => void child.once("exit", () => resolve()));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(stop);
  const url = `http://127.0.0.1:${instance.setting("orchestrator", "SVC_API_PORT") ?? ""}`;
  const alive = () =>
    fetch(`${url}/livez`).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(alive, { timeout: 60_000 }).toBe(204);
  return { url, stop };
}

export async function createProject(url: string, name: string): Promise<number> {
  const { status } = await fetch(`${url}/admin/projects`, { method: "POST", headers, body: JSON.stringify({ name }) });
  return status;
}

export async function projectsOf(url: string): Promise<readonly unknown[]> {
  return (await fetch(`${url}/admin/projects`, { headers })).json() as Promise<readonly unknown[]>;
}

/** Above it a busy machine is not asked for more. */
const MOST_AT_ONCE = 100;

/** Creates fifty projects a second, whether the earlier ones are answered or not, until it is told to end. */
export function creating(url: string) {
  const begun = performance.now();
  const answers: number[] = [];
  const open = new Set<Promise<void>>();
  let asked = 0;
  const timer = setInterval(() => {
    for (let index = 0; index < 5 && open.size < MOST_AT_ONCE; index++) {
      const one = createProject(url, `p${asked++}`)
        .catch(() => 0)
        .then((status) => {
          answers.push(status);
          open.delete(one);
        });
      open.add(one);
    }
  }, 100);
  return {
    made: () => answers.length,

    /** @returns the answers' statuses, each once, and how many there were a second */
    async end(): Promise<{ readonly statuses: readonly number[]; readonly rate: number }> {
      clearInterval(timer);
      await Promise.all(open);
      const rate = Math.round(answers.length / ((performance.now() - begun) / 1_000));
      return { statuses: [...new Set(answers)], rate };
    },
  };
}
