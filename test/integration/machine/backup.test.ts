/** `svc backup` while an orchestrator writes, the drill, and a restore on another machine, which here is another root directory. */

import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { makeBackup } from "../../../machine/backup/backup.ts";
import { countRecords, moveToPostgres } from "../../../machine/backup/database.ts";
import { drill } from "../../../machine/backup/drill.ts";
import { restore, withBackup } from "../../../machine/backup/restore.ts";
import { PATH } from "../../../machine/base/commands.ts";
import type { Machine } from "../../../machine/base/this-machine.ts";
import {
  createMachines,
  createProject,
  creating,
  projectsOf,
  started,
  TOKEN,
  user,
} from "../../support/machine/orchestrators.ts";
import { freePort } from "../../support/peers/listening.ts";
import { findPrograms, startPostgres } from "../../support/postgres/cluster.ts";

const SLOW = { timeout: 240_000 };
const silent = () => undefined;

let machines: ReturnType<typeof createMachines>;
let folder = "";
beforeAll(() => {
  machines = createMachines();
  ({ folder } = machines);
}, 240_000);
afterAll(() => machines.remove());

/** Makes a backup while fifty creates a second run. */
async function backupWhileCreating(machine: Machine, url: string, archive: string) {
  const writing = creating(url);
  await expect.poll(writing.made, { timeout: 60_000 }).toBeGreaterThan(100);
  const before = writing.made();
  const manifest = await makeBackup(machine, { path: archive, onStep: silent });
  const { statuses, rate } = await writing.end();
  console.log(
    `${manifest.database}: ${before} projects before the backup, ${writing.made()} after it, ${rate} a second`,
  );
  expect(statuses).toEqual([201]);
  return { manifest, before, after: writing.made() };
}

test(
  "a backup while fifty creates a second run is whole, its drill is green, and another machine goes on with it",
  SLOW,
  async () => {
    const machine = await machines.setUp("first");
    const { url, stop } = await started(machine);
    const archive = join(folder, "backup.tar.gz");
    const { manifest, before, after } = await backupWhileCreating(machine, url, archive);
    expect(statSync(archive).mode & 0o777).toBe(0o600);
    expect(manifest.counts["projects"]).toBeGreaterThanOrEqual(before);
    expect(manifest.counts["projects"]).toBeLessThanOrEqual(after);
    expect(readFileSync(archive).includes(TOKEN)).toBe(false);

    await withBackup(machine, archive, async (content, read) => {
      expect(await drill(machine, content, read)).toMatchObject({ problems: [] });
    });
    await stop();

    const other = machines.inPlaceOf("first");
    await withBackup(other, archive, async (content, checked) => {
      await restore(other, content, checked, { force: false, onStep: silent });
    });
    const { config, state } = other.instance.places;
    const database = join(state, "orchestrator/svc.db");
    expect(statSync(database)).toMatchObject({ uid: user.uid, gid: user.gid });
    expect(statSync(join(config, "admin-token")).mode & 0o777).toBe(0o600);
    expect((await countRecords(other, database)).counts).toEqual(manifest.counts);
    const again = await started(machines.read("first"));
    expect((await projectsOf(again.url)).length).toBeGreaterThan(0);
  },
);

/** A machine whose commands find PostgreSQL's programs where the tests have them. */
async function withPostgres(machine: Machine): Promise<Machine> {
  const programs = await findPrograms();
  const run: Machine["run"] = (program, args, given) =>
    machine.run(program, args, { ...given, env: { ...given?.env, PATH: `${programs}:${PATH}` } });
  return { ...machine, run };
}

test(
  "a backup of PostgreSQL while fifty creates a second run goes into an empty server of another machine, which goes on with it",
  SLOW,
  async () => {
    const port = await freePort();
    const server = await startPostgres({ port });
    onTestFinished(() => server.stop());
    const own = [`DATABASE_URL=${server.url}`];
    const machine = await withPostgres(await machines.setUp("postgres", own));
    const { url, stop } = await started(machine);
    const archive = join(folder, "postgres.tar.gz");
    const { manifest, before, after } = await backupWhileCreating(machine, url, archive);
    expect(manifest.database).toBe("PostgreSQL");
    expect(manifest.counts["projects"]).toBeGreaterThanOrEqual(before);
    expect(manifest.counts["projects"]).toBeLessThanOrEqual(after);
    await withBackup(machine, archive, async (content, read) => {
      expect(await drill(machine, content, read)).toMatchObject({ problems: [] });
      const counts = { ...read.counts, projects: before - 1 };
      expect((await drill(machine, content, { ...read, counts })).problems).toEqual([
        `projects: ${manifest.counts["projects"]}, and should have ${before - 1}`,
      ]);
      truncateSync(join(content, "database.dump"), 4_096);
      expect((await drill(machine, content, read)).problems).toEqual([
        expect.stringMatching(/^the dump cannot be read: /),
      ]);
    });
    await stop();
    await server.stop();

    const empty = await startPostgres({ port });
    onTestFinished(() => empty.stop());
    const other = await withPostgres(machines.inPlaceOf("postgres"));
    await withBackup(other, archive, async (content, checked) => {
      await restore(other, content, checked, { force: true, onStep: silent });
    });
    expect(await countRecords(other, empty.url)).toEqual({ integrity: "ok", counts: manifest.counts });
    const again = await started(machines.read("postgres"));
    expect((await projectsOf(again.url)).length).toBeGreaterThan(0);
    expect(await createProject(again.url, "afterwards")).toBe(201);
  },
);

test("a restore does not replace other keys, and a damaged archive does nothing", SLOW, async () => {
  const machine = await machines.setUp("third");
  const { stop } = await started(machine);
  const archive = join(folder, "third.tar.gz");
  await makeBackup(machine, { path: archive, onStep: silent });
  await expect(makeBackup(machine, { path: archive, onStep: silent })).rejects.toThrow(/already/);
  await stop();
  const token = join(machine.instance.places.config, "admin-token");
  writeFileSync(token, "another token of today\n");
  const put = (force: boolean) =>
    withBackup(machine, archive, (content, checked) => restore(machine, content, checked, { force, onStep: silent }));
  await expect(put(false)).rejects.toThrow(/admin-token; --force/);
  expect(readFileSync(token, "utf8")).toBe("another token of today\n");
  await put(true);
  expect(readFileSync(token, "utf8")).toBe(`${TOKEN}\n`);

  const bytes = readFileSync(archive);
  const cut = join(folder, "cut.tar.gz");
  writeFileSync(cut, bytes.subarray(0, bytes.length / 2));
  await expect(withBackup(machine, cut, () => Promise.resolve())).rejects.toThrow(
    /cannot be unpacked: (?!tar: Error is not)/,
  );
  expect(existsSync(join(folder, "cut.tar.gz"))).toBe(true);
});

test("records move to PostgreSQL once the orchestrator is stopped, as its user", SLOW, async () => {
  const machine = await machines.setUp("moving");
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
  await expect(moveToPostgres(machines.read("moving"), server.url)).rejects.toThrow(
    /name a PostgreSQL database already/,
  );
});

test("a drill names what does not fit: records that are gone, a key that is another", SLOW, async () => {
  const machine = await machines.setUp("fourth");
  const { url, stop } = await started(machine);
  expect(await createProject(url, "one")).toBe(201);
  const archive = join(folder, "fourth.tar.gz");
  await makeBackup(machine, { path: archive, onStep: silent });
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
