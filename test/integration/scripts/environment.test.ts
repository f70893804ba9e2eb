/** What the scripts take from the environment of the user who runs them, and where they put files. */

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
/** Their text names an image (its hash is in the name), and scripts with a clean environment start them. */
const PARTS_OF_IMAGES = [
  "scripts/base-image/finish",
  "scripts/host/starters/finish",
  "scripts/starters/desktop/start",
  "scripts/starters/desktop/in-place-of",
  "scripts/starters/browser/start",
  "scripts/host/engine/base-node",
];

function filesBelow(directory: string): string[] {
  return readdirSync(join(root, directory), { recursive: true, encoding: "utf8" })
    .map((name) => join(root, directory, name))
    .filter((path) => statSync(path).isFile() && !path.includes("/node_modules/"))
    .map((path) => relative(root, path));
}

const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const scripts = filesBelow("scripts");
const bashScripts = scripts.filter((file) => textOf(file).startsWith("#!/bin/bash"));
const shellFiles = scripts.filter((file) => bashScripts.includes(file) || /^scripts\/lib\/.*\.sh$/.test(file));

/** The lines that are no comments, with their numbers. */
function code(file: string): string[] {
  return textOf(file)
    .split("\n")
    .map((line, index) => `${file}:${index + 1}: ${line.trim()}`)
    .filter((line) => !/^\S+ (#|\/\/|\*|\/\*)/.test(line));
}

describe("every script", () => {
  test("ignores CDPATH, BASH_ENV and functions of the environment, and reads environment.sh before any other part", () => {
    expect(bashScripts.length).toBeGreaterThan(30);
    const wrong = bashScripts
      .filter((file) => !PARTS_OF_IMAGES.includes(file))
      .filter((file) => {
        const lines = textOf(file).split("\n");
        const parts = lines.filter((line) => line.startsWith('. "$here/'));
        const usesParts = lines.some((line) => line.startsWith("here="));
        return lines[0] !== "#!/bin/bash -p" || (usesParts && parts[0] !== '. "$here/lib/environment.sh"');
      });
    expect(wrong).toEqual([]);
  });

  test("asks this machine with local_curl only, so that no token goes to a proxy", () => {
    const bare = shellFiles
      .flatMap(code)
      .filter((line) => /(^|[^\w./-])curl\s+-/.test(line) && !line.includes("command curl -q --noproxy '*'"));
    expect(bare).toEqual([]);
  });

  test.each(["up", "down", "rotate", "service", "template", "volume", "package", "certbot-hook"])(
    "scripts/%s shows its usage under an environment of which each part stops a careless script",
    (name) => {
      const { status, stdout, stderr } = spawnSync("bash", ["-c", `umask 077; scripts/${name} --usage-please`], {
        cwd: root,
        encoding: "utf8",
        env: {
          PATH: process.env["PATH"],
          HOME: "/nonexistent",
          CDPATH: ".:/tmp:/",
          BASH_ENV: "/nonexistent",
          TMPDIR: "/nonexistent",
          POSIXLY_CORRECT: "1",
          NODE_OPTIONS: "--require=/nonexistent.js",
          "BASH_FUNC_cd%%": "() { echo hijacked; }",
        },
      });
      expect(`${stdout}${stderr}`).toContain("Usage:");
      expect(`${stdout}${stderr}`).not.toMatch(/No such file|hijacked/);
      expect(status).toBe(2);
    },
  );
});

test("environment.sh keeps the user's proxy for other machines, and none for this one", () => {
  const ask = (env: NodeJS.ProcessEnv) => {
    const script =
      '. scripts/lib/environment.sh; printf \'%s|%s|%s|%s|%s\' "$no_proxy" "$NO_PROXY" "$http_proxy" "$(umask)" "${NODE_ENV-}"';
    return spawnSync("bash", ["-pc", `umask 077; ${script}`], {
      cwd: root,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], ...env },
    }).stdout;
  };
  const here = "localhost,.localhost,127.0.0.1,::1";
  expect(ask({ http_proxy: "http://p:1", NODE_ENV: "production" })).toBe(`${here}|${here}|http://p:1|0022|`);
  expect(ask({ http_proxy: "http://p:1", NO_PROXY: "a.example" })).toBe(
    `a.example,${here}|a.example,${here}|http://p:1|0022|`,
  );
  const twice = `b.example,${here}`;
  expect(ask({ no_proxy: twice, http_proxy: "http://p:1" })).toBe(`${twice}|${twice}|http://p:1|0022|`);
});

/** Every line that names a directory which all may write, or that makes a temporary file, with the reason why it is safe. */
const TEMPORARY: readonly (readonly [file: string, reason: string])[] = [
  ["scripts/up", "mktemp below a directory of root's own (own_temporary_files)"],
  ["scripts/test", "mktemp -d: a new directory for root alone, with a name that nobody knows before"],
  ["scripts/package", "mktemp -d: a new directory for the user alone"],
  ["scripts/debian/offline", "mktemp -d: a new directory for the user alone"],
  ["scripts/debian/offline-install", "mktemp -d: for root alone"],
  ["scripts/debian/postrm", "mktemp -d: for root alone"],
  ["scripts/lib/ui.sh", "mktemp -d below a directory of root's own, or a new one for root alone"],
  ["scripts/lib/lanes.sh", "mktemp below the directory of scripts/test"],
  ["scripts/host/programs/envd-runtime", "mktemp -d below /opt/svc"],
  ["scripts/host/programs/install", "mktemp -d below /opt/svc"],
  ["scripts/host/services/settings", "mktemp -d: for root alone"],
  ["scripts/host/engine/base-image", "mktemp -d below /var/lib/svc/cache"],
  ["scripts/host/engine/base-node", "mktemp -d: for root alone, then for the owner of the checkout alone"],
  ["scripts/host/machine/packages", "mktemp: for root alone"],
  ["scripts/host/runtime/register", "mktemp -d: for root alone"],
  ["scripts/host/runtime/svc-runc", "names in CRIU's own log: paths of its mount namespace"],
  ["scripts/host/criu/install", "mktemp -d: for root alone"],
  ["scripts/host/criu/confine/confine-tree.c", "the same tmpfs"],
  ["scripts/host/starters/image", "mktemp -d below /var/lib/svc/cache"],
  ["scripts/host/starters/template", "mktemp: for root alone"],
  ["scripts/host/starters/npm-package.sh", "mktemp -d: for the owner of the checkout alone"],
  ["scripts/host/starters/finish", "mktemp -d: for root alone; the image's own /tmp"],
  ["scripts/starters/desktop/in-place-of", "in a sandbox: files of its own screen"],
  ["scripts/starters/desktop/start", "in a sandbox: the lock of its own screen"],
  ["scripts/host/test/busybox-image", "mktemp -d: for root alone; the image's own /tmp"],
  ["scripts/host/test/postgres", "mktemp -d: for root alone"],
  ["scripts/host/test/prometheus", "mktemp -d: for root alone"],
  ["scripts/host/test/registry", "mktemp -d: for root alone"],
  ["agent/snapshots/criu/probe-memory.ts", "mkdtemp: a new directory for root alone"],
  ["agent/snapshots/beyond/fetch-snapshot.ts", "mkdtemp below the agent's own state directory"],
  ["agent/snapshots/beyond/image-arrivals.ts", "mkdtemp below the agent's own state directory"],
  ["agent/snapshots/beyond/image-trees.ts", "mkdtemp below the agent's own state directory"],
  ["agent/builds/images/provision-script.ts", "in a container: the image's own /tmp"],
  ["agent/builds/steps/steps.ts", "in a container, with a name that nobody knows before"],
  ["shared/dockerfile/shell-text.ts", "in a container: mktemp for a heredoc of a Dockerfile"],
];

test("every temporary file and every path in a folder that all may write is known, with its reason", () => {
  const programs = ["agent", "orchestrator", "shared"].flatMap(filesBelow).filter((file) => /\.(ts|c)$/.test(file));
  const paths = /\bmktemp\b|\bmkdtemp|\btmpdir\(|(^|[\s"'`(=])\/(tmp|var\/tmp|dev\/shm|run\/lock|var\/lock)\b/;
  const found = [...scripts, ...programs]
    .filter((file) => !file.endsWith(".md"))
    .filter((file) => code(file).some((line) => paths.test(line.replace(/^\S+: /, ""))));
  expect(found.toSorted()).toEqual(TEMPORARY.map(([file]) => file).toSorted());
});
