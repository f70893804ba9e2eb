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

function debianPackage(name: string, depends = ""): string {
  const root = join(folder, "packages", name);
  mkdirSync(join(root, "DEBIAN"), { recursive: true });
  const control = `Package: ${name}\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@example.org>\n${depends}Description: of a test\n`;
  writeFileSync(join(root, "DEBIAN/control"), control);
  const path = join(folder, `${name}_1.0_all.deb`);
  execFileSync("dpkg-deb", ["--root-owner-group", "-Znone", "--build", root, path]);
  return path;
}

/** The archive, made on a machine whose apt "fetches" one package. */
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
  writeFileSync(base.trim(), "the base template");
  mkdirSync(join(installed, "criu/4.2/lib"), { recursive: true });
  writeFileSync(join(installed, "criu/4.2/criu.real"), "criu", { mode: 0o755 });
  const tools = join(folder, "tools");
  mkdirSync(tools);
  const fetched = debianPackage("nftables");
  const apt = `for word; do case $word in Dir::Cache::archives=*) archives=\${word#*=} ;; --download-only) cp '${fetched}' "$archives/" ;; esac; done`;
  writeFileSync(join(tools, "apt-get"), `#!/bin/bash\n${apt}\n`, { mode: 0o755 });
  const own = debianPackage("svc", "Depends: nftables\n");
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
  const { components } = JSON.parse(readFileSync(join(content, "sbom.cdx.json"), "utf8")) as {
    components: { purl: string }[];
  };
  const purls = components.map(({ purl }) => purl);
  expect(purls).toContain("pkg:deb/debian/nftables@1.0?arch=all");
  expect(purls.some((purl) => purl.startsWith("pkg:npm/fastify@"))).toBe(true);
  expect(purls.some((purl) => purl.startsWith("pkg:npm/vitest@"))).toBe(false);
});

test("its install takes the package and what it needs from the archive, and puts the base template and CRIU where `up` looks", () => {
  const { state, installed, install } = unpacked("installs");
  const { status, stdout, stderr } = install();
  expect(status, stderr).toBe(0);
  expect(stdout.match(/^Inst \S+/gm)).toEqual(["Inst nftables", "Inst svc"]);
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
