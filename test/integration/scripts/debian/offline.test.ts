/**
 * The archive for machines without a network: what it holds, and that its install takes packages from nowhere else. apt itself reads the
 * archive; it only says what it would do, for a machine that has nothing.
 */

import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const real = join(import.meta.dirname, "../../../..");

let folder: string;
let archive: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-offline-"));
  archive = made();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const replaced = (path: string, changes: Record<string, string>) =>
  writeFileSync(
    path,
    Object.entries(changes).reduce(
      (text, [name, value]) => text.replace(new RegExp(`^${name}=.*$`, "m"), `${name}=${value}`),
      readFileSync(path, "utf8"),
    ),
  );

function debianPackage(name: string, { depends = "", module = "" } = {}): string {
  const root = join(folder, "packages", name);
  mkdirSync(join(root, "DEBIAN"), { recursive: true });
  if (module !== "") {
    const place = join(root, "usr/lib/svc/node_modules", module);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "package.json"), "{}");
  }
  const control = `Package: ${name}\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@example.org>\n${depends}Description: of a test\n`;
  writeFileSync(join(root, "DEBIAN/control"), control);
  const path = join(folder, `${name}_1.0_all.deb`);
  execFileSync("dpkg-deb", ["--root-owner-group", "-Znone", "--build", root, path]);
  return path;
}

/** A base template with nothing but dpkg's list of its one package. */
function baseTemplate(path: string): void {
  const root = join(folder, "base/var/lib/dpkg");
  mkdirSync(root, { recursive: true });
  const status = "Package: socat\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:1.7+really-2\n";
  writeFileSync(join(root, "status"), status);
  execFileSync("tar", ["-czf", path, "-C", join(folder, "base"), "."]);
}

/** The archive, made on a machine whose apt "fetches" two packages. */
function made(): string {
  const checkout = join(folder, "checkout");
  mkdirSync(checkout);
  cpSync(join(real, "scripts"), join(checkout, "scripts"), { recursive: true });
  for (const name of ["node_modules", "LICENSE", "package-lock.json"])
    symlinkSync(join(real, name), join(checkout, name));
  const [state, installed] = [join(folder, "state"), join(folder, "installed")];
  replaced(join(checkout, "scripts/lib/instance.sh"), { SHARED_STATE: state, INSTALLED: installed });
  const base = execFileSync(join(checkout, "scripts/host/engine/base-image"), ["--archive", state], {
    encoding: "utf8",
  });
  mkdirSync(join(state, "cache"), { recursive: true });
  baseTemplate(base.trim());
  mkdirSync(join(installed, "criu/4.2/lib"), { recursive: true });
  writeFileSync(join(installed, "criu/4.2/criu.real"), "criu", { mode: 0o755 });
  const tools = join(folder, "tools");
  mkdirSync(tools);
  const fetched = [debianPackage("nftables"), debianPackage("libnss-myhostname")].map((path) => `'${path}'`).join(" ");
  const apt = `for word; do case $word in Dir::Cache::archives=*) archives=\${word#*=} ;; --download-only) cp ${fetched} "$archives/" ;; esac; done`;
  writeFileSync(join(tools, "apt-get"), `#!/bin/bash\n${apt}\n`, { mode: 0o755 });
  // A tool of tests that the package's scripts have, too.
  const own = debianPackage("svc", { depends: "Depends: nftables\n", module: "e2b" });
  const env = { ...process.env, PATH: `${tools}:${process.env["PATH"] ?? ""}` };
  return execFileSync(join(checkout, "scripts/debian/offline"), [own], { encoding: "utf8", env }).trim();
}

/** The archive unpacked on another machine, whose places are directories of the test. */
function unpacked(name: string) {
  const home = join(folder, name);
  mkdirSync(home);
  execFileSync("tar", ["-xf", archive, "-C", home]);
  const [directory = ""] = readdirSync(home);
  const content = join(home, directory);
  const [state, installed] = [join(home, "state"), join(home, "installed")];
  replaced(join(content, "install"), { state, installed });
  writeFileSync(join(home, "status"), "");
  const config = join(home, "apt.conf");
  writeFileSync(config, `Dir::State::status "${home}/status";\nAPT::Get::Simulate "true";\nDebug::NoLocking "true";\n`);
  const sums = () => {
    const lines = readFileSync(join(content, "SHA256SUMS"), "utf8").split("\n");
    // The test has changed where the script puts things.
    writeFileSync(join(content, "SHA256SUMS"), lines.filter((line) => !line.endsWith(" ./install")).join("\n"));
  };
  sums();
  const install = () =>
    spawnSync(join(content, "install"), [], { encoding: "utf8", env: { ...process.env, APT_CONFIG: config } });
  return { content, state, installed, install };
}

test("the archive holds the packages, the base template, CRIU, a list of all parts and their checksums", () => {
  const { content } = unpacked("holds");
  expect(readdirSync(content).toSorted()).toEqual(
    [
      "LICENSE",
      "SHA256SUMS",
      expect.stringMatching(/^base-.*\.tar\.gz$/) as string,
      "criu",
      "install",
      "packages",
    ].concat(["release", "sbom.cdx.json"]),
  );
});

interface Part {
  readonly type: string;
  readonly name: string;
  readonly version?: string;
  readonly purl?: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly components?: readonly Part[];
}
const DIGITS: Record<string, number> = { "SHA-256": 64, "SHA-512": 128 };

/** What CycloneDX 1.5 asks of a component, and what makes it useful: a version and the name that databases of flaws know. */
function expectPart({ type, name, version, purl, hashes = [], components = [] }: Part): void {
  expect(["application", "library", "container", "file"]).toContain(type);
  expect(name).not.toBe("");
  if (type !== "file") expect(version, name).toMatch(/^\S+$/);
  if (type === "library") expect(purl).toMatch(/^pkg:(npm|deb\/debian)\/[^\s@]+@[^\s@]+$/);
  for (const { alg, content } of hashes) expect(content).toMatch(new RegExp(`^[0-9a-f]{${DIGITS[alg] ?? 0}}$`));
  components.forEach(expectPart);
}

test("the list of parts is one of CycloneDX, with what is in the programs, the package, the base template and CRIU", () => {
  const { content } = unpacked("parts");
  const list = JSON.parse(readFileSync(join(content, "sbom.cdx.json"), "utf8")) as {
    readonly bomFormat: string;
    readonly specVersion: string;
    readonly metadata: { readonly timestamp: string; readonly component: Part };
    readonly components: readonly Part[];
  };
  expect(list).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1 });
  expect(new Date(list.metadata.timestamp).toISOString()).toBe(list.metadata.timestamp);
  expect(list.metadata.component).toMatchObject({ type: "application", name: "svc", version: "1.0" });
  const { components } = list;
  [...components, list.metadata.component].forEach(expectPart);
  const purls = components.map(({ purl }) => purl);
  expect(purls.filter((purl) => purl?.startsWith("pkg:deb"))).toEqual([
    "pkg:deb/debian/libnss-myhostname@1.0?arch=all",
    "pkg:deb/debian/nftables@1.0?arch=all",
    "pkg:deb/debian/criu@4.2",
  ]);
  const lock = JSON.parse(readFileSync(join(real, "package-lock.json"), "utf8")) as {
    readonly packages: Record<
      string,
      { readonly name?: string; readonly version: string; readonly dev?: boolean; readonly optional?: boolean }
    >;
  };
  // With their versions: all of the programs, what the package's scripts have beside them, and no tool of tests else.
  const built = Object.entries(lock.packages).filter(
    ([place, { dev, optional }]) => place !== "" && dev !== true && optional !== true,
  );
  const nameOf = (place: string, name?: string) => name ?? place.split("node_modules/").at(-1) ?? "";
  const missing = built
    .map(([place, { name, version }]) => `pkg:npm/${nameOf(place, name).replace("@", "%40")}@${version}`)
    .filter((purl) => !purls.includes(purl));
  expect(missing).toEqual([]);
  const versionOf = (name: string) => lock.packages[`node_modules/${name}`]?.version ?? "";
  for (const name of ["fastify", "better-sqlite3", "e2b", `node-linux-${process.arch}`])
    expect(purls).toContain(`pkg:npm/${name}@${versionOf(name)}`);
  expect(purls).not.toContain(`pkg:npm/vitest@${versionOf("vitest")}`);
  expect(purls.filter((purl) => purl?.includes("/node-linux-"))).toHaveLength(1);
  const base = components.find(({ type }) => type === "container")?.components?.map(({ purl }) => purl);
  expect(base).toContain("pkg:deb/debian/socat@1%3A1.7%2Breally-2?arch=amd64");
  expect(base?.some((purl) => purl?.startsWith("pkg:npm/yarn@"))).toBe(true);
  expect(base?.filter((purl) => purl?.includes("/node-linux-"))).toHaveLength(1);
});

test("its install takes the package and what it needs from the archive, and puts the base template and CRIU where `up` looks", () => {
  const { state, installed, install } = unpacked("installs");
  const { status, stdout, stderr } = install();
  expect(status, stderr).toBe(0);
  expect(stdout.match(/^Inst \S+/gm)?.toSorted()).toEqual(["Inst libnss-myhostname", "Inst nftables", "Inst svc"]);
  expect(readdirSync(join(state, "cache"))).toEqual([expect.stringMatching(/^base-.*\.tar\.gz$/)]);
  expect(readFileSync(join(installed, "criu/4.2/criu.real"), "utf8")).toBe("criu");
});

test.each([
  [
    "damaged",
    (content: string) => writeFileSync(join(content, "packages/svc_1.0_all.deb"), "x"),
    "the archive is damaged",
  ],
  [
    "of another Debian",
    (content: string) => writeFileSync(join(content, "release"), "bo\n"),
    "the packages are of Debian bo",
  ],
])("an archive that is %s installs nothing", (what, change, reason) => {
  const { content, state, install } = unpacked(what.replaceAll(" ", "-"));
  change(content);
  expect(install()).toMatchObject({ status: 1, stderr: expect.stringContaining(reason) as string });
  expect(existsSync(state)).toBe(false);
});

test("a CRIU that the machine has stays as it is, because a program of it may run", () => {
  const { installed, install } = unpacked("again");
  mkdirSync(join(installed, "criu/4.2"), { recursive: true });
  writeFileSync(join(installed, "criu/4.2/criu.real"), "as it was");
  const { status, stderr } = install();
  expect(status, stderr).toBe(0);
  expect(readFileSync(join(installed, "criu/4.2/criu.real"), "utf8")).toBe("as it was");
  expect(readdirSync(join(installed, "criu"))).toEqual(["4.2"]);
});
