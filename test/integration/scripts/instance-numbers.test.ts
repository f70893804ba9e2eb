/** The ports and addresses of several platforms on one machine. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib");

/** A machine whose settings are in a directory of this test. */
function machine() {
  const etc = mkdtempSync(join(tmpdir(), "svc-numbers-"));
  onTestFinished(() => rmSync(etc, { recursive: true }));
  const inInstance = (name: string, command: string) => {
    const script = `set -euo pipefail; . ${library}/environment.sh
eval "$(sed 's|^CONFIG_DIR=/etc/|CONFIG_DIR=${etc}/|' ${library}/instance.sh | sed 's|^CHECKOUT=.*|CHECKOUT=${etc}|')"
${command}`;
    const { stdout, stderr } = spawnSync("bash", ["-pc", script], {
      encoding: "utf8",
      env: { ...process.env, SVC_INSTANCE: name },
    });
    expect(stderr).toBe("");
    return stdout.trim();
  };
  const shown = 'echo "$API_PORT $SUBNET"';
  return { etc, inInstance, setUp: (name: string) => inInstance(name, "keep_number"), shown };
}

test("thirty instances of one machine have different ports and different addresses, whatever their names are", () => {
  const { etc, inInstance, setUp, shown } = machine();
  const names = Array.from({ length: 30 }, (_, index) => `n${index}`);
  for (const name of names) setUp(name);
  const numbers = names.map((name) => Number(readFileSync(join(etc, `svc-${name}`, "number"), "utf8")));
  expect(new Set(numbers).size).toBe(30);
  expect(new Set(numbers.map((number) => number % 30)).size).toBe(30);
  const number = numbers[7] ?? 0;
  expect(inInstance("n7", shown)).toBe(`${3000 + number * 100} 10.${(number % 30) + 214}.0.0/16`);
});

test("an instance keeps its numbers when it is set up again, and when others come and go", () => {
  const { etc, inInstance, setUp, shown } = machine();
  setUp("a");
  const before = inInstance("a", shown);
  for (const name of ["b", "c", "d"]) setUp(name);
  rmSync(join(etc, "svc-b"), { recursive: true });
  setUp("a");
  expect(inInstance("a", shown)).toBe(before);
});

test("an instance of an earlier version keeps the numbers that follow from its name, also beside one that has them", () => {
  const { etc, inInstance, setUp, shown } = machine();
  const before = inInstance("old", shown);
  mkdirSync(join(etc, "svc-old"));
  writeFileSync(join(etc, "svc-old", "agent.env"), "");
  setUp("new");
  setUp("old");
  expect(inInstance("old", shown)).toBe(before);
});

test("the default instance has the documented ports, and nothing is written down for it", () => {
  const { etc, inInstance, setUp, shown } = machine();
  setUp("");
  expect(inInstance("", shown)).toBe("3000 10.213.0.0/16");
  expect(existsSync(join(etc, "svc"))).toBe(false);
  setUp("a");
  expect(readFileSync(join(etc, "svc-a", "number"), "utf8")).toMatch(/^\d+\n$/);
});
