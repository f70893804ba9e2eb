/** The files of a backup without records, as an edge's: which they are, who may read them afterwards, and what an interruption leaves. */

import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeBackup } from "../../../machine/backup/backup.ts";
import { type Manifest, manifestOf } from "../../../machine/backup/manifest.ts";
import { restore, withBackup } from "../../../machine/backup/restore.ts";
import { readInstance } from "../../../machine/base/instance.ts";
import { type Machine, thisMachine } from "../../../machine/base/this-machine.ts";
import { serviceUser } from "../../../machine/evidence/files.ts";

/** Where `up` has never run there is no user for the programs: then it is root. */
const service = serviceUser() ?? { uid: 0, gid: 0 };
const onStep = () => undefined;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "svc-settings-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The machine of an edge, whose root is below the folder. */
function edge(place: string, signal?: AbortSignal): Machine {
  const root = join(place, "machine");
  const put = (path: string, mode: number, owner = { uid: 0, gid: 0 }) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${path}\n`, { mode });
    chownSync(join(root, path), owner.uid, owner.gid);
  };
  put("etc/svc/edge.env", 0o600);
  put("etc/svc/site/authority.key", 0o600);
  put("etc/svc/site/key.pem", 0o400, service);
  put("var/lib/svc/edge/membership/membership.json", 0o600);
  writeFileSync(join(root, "etc/svc/role"), "edge\n");
  return thisMachine(readInstance("", root), signal);
}

test("a restore brings the certificates back, and who may read each file", async () => {
  const place = folder();
  const machine = edge(place);
  const archive = join(place, "backup.tar.gz");
  const manifest = await makeBackup(machine, { path: archive, onStep });
  expect(manifest.files.map(({ path }) => path)).toEqual([
    "config/edge.env",
    "config/role",
    "config/site/authority.key",
    "config/site/key.pem",
    "edge-membership/membership.json",
  ]);

  const root = join(place, "other");
  mkdirSync(join(root, "etc"), { recursive: true });
  const other = thisMachine(readInstance("", root));
  await withBackup(other, archive, (content, read) => restore(other, content, read, { force: false, onStep }));
  const seen = (path: string) => {
    const { mode, uid, gid } = statSync(join(root, path));
    return { mode: mode & 0o777, uid, gid };
  };
  const key = "etc/svc/site/key.pem";
  expect(readFileSync(join(root, key), "utf8")).toBe(`${key}\n`);
  expect(seen(key)).toEqual({ mode: 0o400, ...service });
  expect(seen("etc/svc/site/authority.key")).toEqual({ mode: 0o600, uid: 0, gid: 0 });
  expect(seen("etc/svc/site")).toEqual({ mode: 0o750, uid: 0, gid: service.gid });
  expect(seen("etc/svc")).toEqual({ mode: 0o750, uid: 0, gid: service.gid });
  expect(seen("var/lib/svc/edge/membership")).toEqual({ mode: 0o700, uid: 0, gid: 0 });
});

test("of two backups at once to one file the later is refused, and nothing of it is left", async () => {
  const place = folder();
  const machine = edge(place);
  const path = join(place, "backup.tar.gz");
  const made = await Promise.allSettled([makeBackup(machine, { path, onStep }), makeBackup(machine, { path, onStep })]);
  expect(made.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(readdirSync(place).toSorted()).toEqual(["backup.tar.gz", "machine"]);
});

test("a backup that is ended leaves nothing behind", async () => {
  const place = folder();
  const machine = edge(place, AbortSignal.abort());
  const backup = makeBackup(machine, { path: join(place, "backup.tar.gz"), onStep });
  await expect(backup).rejects.toThrow("interrupted");
  expect(readdirSync(place)).toEqual(["machine"]);
});

test("a restore of PostgreSQL's records without --force changes nothing, also no settings", async () => {
  const place = folder();
  const root = join(place, "other");
  mkdirSync(join(root, "etc"), { recursive: true });
  mkdirSync(join(place, "content/config"), { recursive: true });
  writeFileSync(join(place, "content/config/role"), "orchestrator\n");
  const file = { path: "config/role", bytes: 13, sha256: "" };
  const about = { madeAt: "2026-11-20T12:00:00Z", version: "0.1.0", instance: "", role: "orchestrator" };
  const manifest: Manifest = manifestOf({ ...about, database: "PostgreSQL", counts: {}, files: [file] });
  const machine = thisMachine(readInstance("", root));
  const restored = restore(machine, join(place, "content"), manifest, { force: false, onStep });
  await expect(restored).rejects.toThrow(/say --force/);
  expect(existsSync(join(root, "etc/svc"))).toBe(false);
});
