/** The files of secrets that `scripts/rotate` changes: each is as it was, or as it should be, wherever the script is killed. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const scripts = new URL("../../../scripts/", import.meta.url).pathname;

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "svc-rotation-"));
  file = join(directory, "secrets");
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Runs a line of bash with the functions of the library; FILE is the file of the test. */
function bash(line: string): number | null {
  const text = `. ${scripts}lib/instance.sh; . ${scripts}lib/secrets/rotation.sh; ${line}`;
  return spawnSync("bash", ["-euc", text], { env: { ...process.env, FILE: file, SVC_INSTANCE: "" } }).status;
}

const write = (text: string) => writeFileSync(file, text, { mode: 0o640 });
const read = () => readFileSync(file, "utf8");
const SETTINGS = 'SVC_A=1\nSVC_SEED=first\nSVC_B="x \\"y"\n';
const NEW = "[\\w-]{43}";

test("a setting gets a new value, and the earlier values stay beside it, newest first, until they are dropped", () => {
  write(SETTINGS);
  expect(bash('replace_secret "$FILE" SVC_SEED')).toBe(0);
  expect(read()).toMatch(new RegExp(`^SVC_A=1\\nSVC_SEED=${NEW}\\nSVC_B="x \\\\"y"\\nSVC_SEED_PREVIOUS=first\\n$`));
  const [, second = ""] = /^SVC_SEED=(.*)$/m.exec(read()) ?? [];
  expect(bash('replace_secret "$FILE" SVC_SEED')).toBe(0);
  expect(read()).toContain(`\nSVC_SEED_PREVIOUS=${second},first\n`);
  expect(bash('drop_previous "$FILE" SVC_SEED')).toBe(0);
  expect(read()).toMatch(new RegExp(`^SVC_A=1\\nSVC_SEED=${NEW}\\nSVC_B="x \\\\"y"\\n$`));
  expect((statSync(file).mode & 0o777).toString(8)).toBe("640");
});

test.each(["SVC_A=1\n", "SVC_SEED=\n", "SVC_SEED=a,b\n"])("settings %j have no seed that could be replaced", (text) => {
  write(text);
  expect(bash('replace_secret "$FILE" SVC_SEED')).not.toBe(0);
  expect(read()).toBe(text);
});

test("a new admin token comes first, the present one ends after the overlap, and one that has ended is removed", () => {
  write("token-one\ntoken-two 2999-01-01T00:00:00Z\ntoken-old 2020-01-01T00:00:00Z\n");
  const before = Date.now();
  expect(bash('replace_admin_token "$FILE" 3600')).toBe(0);
  const [first, ...others] = read().trimEnd().split("\n");
  expect(first).toMatch(new RegExp(`^${NEW}$`));
  expect(others.map((line) => line.split(" ")[0])).toEqual(["token-one", "token-two"]);
  for (const line of others) {
    const seconds = (Date.parse(line.split(" ")[1] ?? "") - before) / 1_000;
    expect(seconds).toBeGreaterThan(3_590);
    expect(seconds).toBeLessThan(3_720);
  }
});

test("a new seal key comes before those that the file has, and an empty file gets none", () => {
  write("key-one\n");
  expect(bash('add_first_line "$FILE"')).toBe(0);
  expect(read()).toMatch(new RegExp(`^${NEW}\\nkey-one\\n$`));
  write("");
  expect(bash('add_first_line "$FILE"')).not.toBe(0);
  expect(read()).toBe("");
});

test.each(["head", "chown", "chmod", "sync", "mv"])(
  "killed at its call of %s, a script leaves the old file or the new one",
  (call) => {
    for (const change of [
      'replace_secret "$FILE" SVC_SEED',
      'drop_previous "$FILE" SVC_SEED',
      'add_first_line "$FILE"',
    ]) {
      write(`${SETTINGS}SVC_SEED_PREVIOUS=zero\n`);
      const before = read();
      bash(`${call}() { kill -KILL $$; }; ${change}`);
      expect(read(), change).toBe(change.startsWith("drop") && call === "head" ? SETTINGS : before);
      // The same command again is not in the way of what the first one has left.
      expect(bash(change), change).toBe(0);
    }
  },
);
