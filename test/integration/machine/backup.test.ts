/** `svc backup` while an orchestrator writes, the drill, and a restore on another machine, which here is another root directory. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { makeBackup } from "../../../machine/backup/backup.ts";
import { countRecords, moveToPostgres } from "../../../machine/backup/database.ts";
import { drill } from "../../../machine/backup/drill.ts";
import { restore, withBackup } from "../../../machine/backup/restore.ts";
import { readInstance } from "../../../machine/base/instance.ts";
import { type Machine, thisMachine } from "../../../machine/base/this-machine.ts";
import { serviceUser } from "../../../machine/evidence/files.ts";
import { freePort } from "../../support/peers/listening.ts";
import { startPostgres } from "../../support/postgres/cluster.ts";

const checkout = join(import.meta.dirname, "../../..");
const SLOW = { timeout: 240_000 };
const TOKEN = "operators-token-of-this-test";
/** Where `up` has never run there is no user for the orchestrator: then it is root. */
const user = serviceUser() ?? { uid: 0, gid: 0 };

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-machine-"));
  // The orchestrator's user has to reach its directory.
  chmodSync(folder, 0o755);
  const tsx = join(checkout, "node_modules/tsx/dist/cli.mjs");
  execFileSync(process.execPath, [tsx, "scripts/build.ts", "--to", join(folder, "app"), "orchestrator", "console"], {
    cwd: checkout,
  });
  symlinkSync(process.execPath, join(folder, "app/node"));
}, 240_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A machine of its own: a root directory with the programs, and nothing else until it is set up or restored. */
function newMachine(name: string): Machine {
  const root = join(folder, name);
  for (const place of ["etc", "var/lib/svc/orchestrator", "run/svc", "var/log/svc", "opt/svc/app"])
    mkdirSync(join(root, place), { recursive: true });
  symlinkSync(join(folder, "app"), join(root, "opt/svc/app/current"));
  chownSync(join(root, "var/lib/svc/orchestrator"), user.uid, user.gid);
  return thisMachine(readInstance("", root));
}

const read = (name: string) => thisMachine(readInstance("", join(folder, name)));

async function setUp(name: string): Promise<Machine> {
  const { config, state } = newMachine(name).instance.places;
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
  writeFileSync(join(config, "orchestrator.own.env"), "", { mode: 0o640 });
  writeFileSync(join(config, "admin-token"), `${TOKEN}\n`, { mode: 0o600 });
  writeFileSync(join(config, "role"), "orchestrator\n");
  chownSync(join(config, "admin-token"), user.uid, user.gid);
  chmodSync(config, 0o755);
  return read(name);
}

/** Starts the orchestrator of the machine, and waits until it answers. */
async function started({ instance }: Machine): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
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
  await expect
    .poll(
      () =>
        fetch(`${url}/livez`).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 60_000 },
    )
    .toBe(204);
  return { url, stop };
}

const headers = { "x-admin-token": TOKEN, "content-type": "application/json" };
const createProject = async (url: string, name: string) => {
  const { status } = await fetch(`${url}/admin/projects`, { method: "POST", headers, body: JSON.stringify({ name }) });
  return status;
};

test(
  "a backup while fifty creates a second run is whole, its drill is green, and another machine goes on with it",
  SLOW,
  async () => {
    const machine = await setUp("first");
    const { url, stop } = await started(machine);
    const writing = { goesOn: true, made: 0 };
    const writer = (async () => {
      while (writing.goesOn) {
        const made = await Promise.all(
          Array.from({ length: 5 }, (_, index) => createProject(url, `p${writing.made + index}`)),
        );
        expect(new Set(made)).toEqual(new Set([201]));
        writing.made += made.length;
        await new Promise((resolve) => void setTimeout(resolve, 100));
      }
    })();
    await expect.poll(() => writing.made, { timeout: 30_000 }).toBeGreaterThan(10);
    const archive = join(folder, "backup.tar.gz");
    const before = writing.made;
    const manifest = await makeBackup(machine, { path: archive, onStep: () => undefined });
    writing.goesOn = false;
    await writer;
    expect(statSync(archive).mode & 0o777).toBe(0o600);
    expect(manifest.counts["projects"]).toBeGreaterThanOrEqual(before);
    expect(readFileSync(archive).includes(TOKEN)).toBe(false);

    await withBackup(machine, archive, async (content, read) => {
      expect(await drill(machine, content, read)).toMatchObject({ problems: [] });
    });
    await stop();

    const other = newMachine("second");
    await withBackup(other, archive, async (content, checked) => {
      await restore(other, content, checked, { force: false, onStep: () => undefined });
    });
    // The settings name the first machine's directories: on a true second machine these are the same.
    const database = join(folder, "first/var/lib/svc/orchestrator/svc.db");
    expect(statSync(database)).toMatchObject({ uid: user.uid, gid: user.gid });
    expect(statSync(join(other.instance.places.config, "admin-token")).mode & 0o777).toBe(0o600);
    const again = await started(read("first"));
    const projects = (await (
      await fetch(`${again.url}/admin/projects?limit=1`, { headers })
    ).json()) as readonly unknown[];
    expect(projects.length).toBeGreaterThan(0);
  },
);

test("a restore does not replace other keys, and a damaged archive does nothing", SLOW, async () => {
  const machine = await setUp("third");
  const { stop } = await started(machine);
  const archive = join(folder, "third.tar.gz");
  await makeBackup(machine, { path: archive, onStep: () => undefined });
  await expect(makeBackup(machine, { path: archive, onStep: () => undefined })).rejects.toThrow(/already/);
  await stop();
  const token = join(machine.instance.places.config, "admin-token");
  writeFileSync(token, "another token of today\n");
  const put = (force: boolean) =>
    withBackup(machine, archive, (content, checked) =>
      restore(machine, content, checked, { force, onStep: () => undefined }),
    );
  await expect(put(false)).rejects.toThrow(/admin-token; --force/);
  expect(readFileSync(token, "utf8")).toBe("another token of today\n");
  await put(true);
  expect(readFileSync(token, "utf8")).toBe(`${TOKEN}\n`);

  const bytes = readFileSync(archive);
  const cut = join(folder, "cut.tar.gz");
  writeFileSync(cut, bytes.subarray(0, bytes.length / 2));
  await expect(withBackup(machine, cut, () => Promise.resolve())).rejects.toThrow(/cannot be unpacked: (?!tar: Error is not)/);
  expect(existsSync(join(folder, "cut.tar.gz"))).toBe(true);
});

test("records move to PostgreSQL once the orchestrator is stopped, as its user", SLOW, async () => {
  const machine = await setUp("moving");
  const { url, stop } = await started(machine);
  expect(await createProject(url, "moved")).toBe(201);
  const server = await startPostgres({ port: await freePort() });
  onTestFinished(() => server.stop());
  await expect(moveToPostgres(machine, server.url)).rejects.toThrow(/nothing was moved: .*has '.*svc\.db' open/);
  await stop();
  const { moved, counts } = await moveToPostgres(machine, server.url);
  expect({ moved, projects: counts["projects"] }).toEqual({ moved: true, projects: 1 });
  expect((await countRecords(machine, server.url)).counts).toMatchObject(counts);
  writeFileSync(join(machine.instance.places.config, "orchestrator.own.env"), `DATABASE_URL=${server.url}\n`);
  await expect(moveToPostgres(read("moving"), server.url)).rejects.toThrow(/name a PostgreSQL database already/);
});

test("a drill names what does not fit: records that are gone, a key that is another", SLOW, async () => {
  const machine = await setUp("fourth");
  const { url, stop } = await started(machine);
  expect(await createProject(url, "one")).toBe(201);
  const archive = join(folder, "fourth.tar.gz");
  await makeBackup(machine, { path: archive, onStep: () => undefined });
  await stop();
  await withBackup(machine, archive, async (content, manifest) => {
    const counts = { ...manifest.counts, projects: (manifest.counts["projects"] ?? 0) + 1 };
    expect((await drill(machine, content, { ...manifest, counts })).problems).toEqual([
      expect.stringMatching(/^projects: /),
    ]);
    rmSync(join(content, "config/orchestrator.env"));
    expect((await drill(machine, content, manifest)).problems[0]).toMatch(/does not start/);
  });
});
