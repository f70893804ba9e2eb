/**
 * `svc doctor` on a platform that runs (`SVC_INSTANCE=NAME ./scripts/up`): healthy, and with real faults that harm this instance
 * alone. Each is named first; what `--fix` claims is mended. What no instance can break alone (CRIU, Docker, the clock) is another
 * place or another clock for the same code.
 */

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { readInstance } from "../../machine/base/instance.ts";
import { type Machine, type Places, thisMachine } from "../../machine/base/this-machine.ts";
import { examine, mend, type Report } from "../../machine/doctor/doctor.ts";

const checkout = join(import.meta.dirname, "../..");
const name = process.env["SVC_INSTANCE"] ?? "";
const run = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { encoding: "utf8", cwd: checkout });
const service = (verb: string, program: string) => run("./scripts/service", verb, program);
const machine = (): Machine => thisMachine(readInstance(name));
const withPlaces = (places: Partial<Places>): Machine => ({ ...machine(), places: { ...machine().places, ...places } });

const wrong = ({ checks }: Report) => checks.filter(({ status }) => status === "failed" || status === "warning");
/** What the machine itself has without any fault, such as an old runc. */
let usual: readonly string[] = [];
const named = async (of: Machine = machine()) =>
  wrong(await examine(of))
    .map(({ id }) => id)
    .filter((id) => !usual.includes(id));
const first = async (of?: Machine) => (await named(of))[0];

let folder = "";
beforeAll(async () => {
  if (name === "") throw new Error("SVC_INSTANCE must name an instance of these tests: they break it");
  folder = mkdtempSync(join(tmpdir(), "svc-doctor-"));
  usual = wrong(await examine(machine()))
    .filter(({ status }) => status === "warning")
    .map(({ id }) => id);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Settings of the agent as an operator would add them; the running agent does not read them again. */
function withSetting(line: string): void {
  const file = join(machine().instance.places.config, "agent.own.env");
  const before = readFileSync(file);
  appendFileSync(file, `${line}\n`);
  onTestFinished(() => writeFileSync(file, before));
}

/** A small file system with this much of it in use. */
function smallDisk(options: string, usedBytes: number): string {
  const place = mkdtempSync(join(folder, "disk-"));
  run("mount", "-t", "tmpfs", "-o", options, "tmpfs", place);
  onTestFinished(() => void run("umount", place));
  if (usedBytes > 0) writeFileSync(join(place, "full"), Buffer.alloc(usedBytes, 1));
  return place;
}

/** Valid for a day from now on. */
function certificate(): string {
  const [key, file] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", file];
  run("openssl", "req", "-x509", ...made, "-subj", "/CN=node", "-days", "1");
  return readFileSync(file, "utf8");
}

test("a healthy instance has no failure, whatever else runs on the machine", async () => {
  const report = await examine(machine());
  expect(report.checks.filter(({ status }) => status === "failed")).toEqual([]);
  expect(report.ok).toBe(true);
  expect(report.checks.filter(({ status }) => status === "ok").length).toBeGreaterThan(40);
});

describe("while the platform runs", () => {
  test("CRIU that is removed", async () => {
    expect(await first(withPlaces({ criu: join(folder, "criu") }))).toBe("criu.missing");
  });

  test("CRIU that cannot dump", async () => {
    const path = join(folder, "broken-criu");
    writeFileSync(
      path,
      "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Version: 1.0' && exit\necho 'no dump today' >&2\nexit 1\n",
      { mode: 0o755 },
    );
    expect(await first(withPlaces({ criu: path }))).toBe("criu.dump");
  });

  test("Docker that does not answer", async () => {
    expect(await first(withPlaces({ dockerSocket: join(folder, "docker.sock") }))).toBe("docker.silent");
  });

  test("a clock that has gone back", async () => {
    expect(await first({ ...machine(), now: () => Date.now() - 3_600_000 })).toBe("clock.back");
  });

  test("name servers that are dead, or none", async () => {
    const conf = join(folder, "resolv.conf");
    writeFileSync(conf, "");
    expect(await first(withPlaces({ resolvConf: conf }))).toBe("dns.silent");
    writeFileSync(conf, "nameserver 127.0.0.77\n");
    expect(await first(withPlaces({ resolvConf: conf }))).toBe("dns.silent");
  });

  test("a disk that is 97 % full", async () => {
    withSetting(`SVC_DISKS_DIR=${smallDisk("size=10m", 9.75 * 2 ** 20)}`);
    expect(await first()).toBe("disks.full");
  });

  test("a disk without inodes", async () => {
    const place = smallDisk("size=10m,nr_inodes=20", 0);
    for (let index = 0; index < 18; index++) writeFileSync(join(place, String(index)), "");
    withSetting(`SVC_DISKS_DIR=${place}`);
    expect(await first()).toBe("disks.inodes");
  });

  test("a disk that is read-only", async () => {
    withSetting(`SVC_DISKS_DIR=${smallDisk("size=10m,ro", 0)}`);
    expect(await first()).toBe("disks.read-only");
  });

  test("a file that all can read, which --fix mends", async () => {
    const file = join(machine().instance.places.config, "admin-token");
    chmodSync(file, 0o644);
    onTestFinished(() => chmodSync(file, 0o600));
    const report = await examine(machine());
    expect(wrong(report).filter(({ id }) => !usual.includes(id))[0]).toMatchObject({
      id: "files.access",
      evidence: expect.stringContaining(file) as string,
    });
    expect(await mend(report, machine())).toMatchObject([{ id: "files.access", problem: undefined }]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await named()).toEqual([]);
  });

  test("a key of another owner, which --fix gives back", async () => {
    const file = join(machine().instance.places.config, "secrets.key");
    const { uid, gid } = statSync(file);
    run("chown", "0:0", file);
    onTestFinished(() => void run("chown", `${uid}:${gid}`, file));
    const report = await examine(machine());
    expect(wrong(report).filter(({ id }) => !usual.includes(id))[0]?.id).toBe("files.access");
    await mend(report, machine());
    expect(statSync(file)).toMatchObject({ uid, gid });
  });

  test("a file with keys that is gone", async () => {
    const file = join(machine().instance.places.config, "admin-token");
    renameSync(file, `${file}.away`);
    onTestFinished(() => renameSync(`${file}.away`, file));
    expect(await first()).toBe("files.missing");
  });

  test("a certificate that has expired, and one that is damaged", async () => {
    const directory = join(machine().instance.places.state, "agent/membership");
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const file = join(directory, "membership.json");
    onTestFinished(() => rmSync(file, { force: true }));
    writeFileSync(file, JSON.stringify({ certificate: certificate() }), { mode: 0o600 });
    expect(await first({ ...machine(), now: () => Date.now() + 40 * 86_400_000 })).toBe("certificates.expired");
    writeFileSync(file, JSON.stringify({ certificate: "none" }), { mode: 0o600 });
    expect(await first()).toBe("certificates.unreadable");
  });

  test("settings that wait for a restart", async () => {
    withSetting("# changed");
    expect(await named()).toEqual(["upgrade.restart"]);
  });

  test("a loop device whose file is deleted", async () => {
    const file = join(machine().instance.places.state, "doctor-test.img");
    run("truncate", "--size", "1M", file);
    const device = run("losetup", "--find", "--show", file).trim();
    onTestFinished(() => void run("losetup", "--detach", device));
    rmSync(file);
    expect(await named()).toEqual(["orphans.mounts"]);
  });

  test("an orphan container", async () => {
    // The agent removes what has had no owner for forty seconds.
    const node = machine().instance.setting("agent", "SVC_NODE_ID") ?? "";
    const image = run("docker", "image", "ls", "--quiet", "--filter", "reference=svc/*").split("\n")[0] ?? "";
    const id = run(
      "docker",
      "create",
      "--name",
      "svc-orphan",
      "--network",
      "none",
      "--label",
      `svc.node=${node}`,
      image,
      "true",
    ).trim();
    onTestFinished(() => void run("docker", "rm", "--force", id));
    const found = wrong(await examine(machine())).find(({ id: check }) => check === "orphans.objects");
    expect(found?.evidence).toContain("svc-orphan");
  });

  test("a program that hangs", async () => {
    const pid = service("pid", "agent").trim();
    run("kill", "-STOP", pid);
    onTestFinished(() => void run("kill", "-CONT", pid));
    expect(await first()).toBe("programs.silent");
  });
});

describe("while a program is down", () => {
  const down = (program: string) => {
    service("stop", program);
    onTestFinished(() => void service("start", program));
  };

  test("an agent that has ended", async () => {
    down("agent");
    expect(await first()).toBe("programs.stopped");
  });

  test("a firewall that is flushed, a bridge that is deleted, and a link that is left", async () => {
    down("agent");
    const { network } = machine().instance;
    run("ip", "link", "add", `${network}-7777`, "type", "bridge");
    expect(await named()).toContain("orphans.objects");
    run("ip", "link", "del", `${network}-7777`);
    run("nft", "delete", "table", "inet", network);
    expect(await first()).toBe("firewall.table");
    run("ip", "link", "del", `${network}0`);
    run("nft", "add", "table", "inet", network);
    expect(await named()).toEqual(expect.arrayContaining(["firewall.table", "firewall.bridge"]));
    run("nft", "delete", "table", "inet", network);
  });

  test("a port that another program has taken", async () => {
    down("orchestrator");
    const port = Number(machine().instance.setting("orchestrator", "SVC_API_PORT"));
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(port, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    expect(await first()).toBe("ports.taken");
    server.close();
  });

  test("a database that is read-only, damaged, or gone", async () => {
    down("orchestrator");
    const path = machine().instance.setting("orchestrator", "SVC_DATABASE") ?? "";
    run("mount", "--bind", path, path);
    run("mount", "-o", "remount,bind,ro", path);
    try {
      expect(await first()).toBe("database.broken");
    } finally {
      run("umount", path);
    }
    const kept = join(folder, "svc.db");
    copyFileSync(path, kept);
    const { uid, gid } = statSync(path);
    try {
      writeFileSync(path, "no database at all");
      expect(await first()).toBe("database.broken");
      rmSync(path);
      expect(await first()).toBe("database.broken");
    } finally {
      copyFileSync(kept, path);
      run("chown", `${uid}:${gid}`, path);
      chmodSync(path, 0o600);
    }
  });
});
