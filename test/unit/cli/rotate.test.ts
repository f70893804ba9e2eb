/** `svc rotate`: what it asks scripts/rotate for, what it says restarts, and which keys the script knows. */

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { KEYS, rotationOf, runScript } from "../../../cli/commands/machine/rotate.ts";
import type { Options } from "../../../cli/options.ts";
import { run } from "../../../machine/base/commands.ts";
import { readInstance } from "../../../machine/base/instance.ts";

test("the command and the script know the same keys", () => {
  const script = readFileSync(join(import.meta.dirname, "../../../scripts/rotate"), "utf8");
  const usage = [...script.matchAll(/^# .*scripts\/rotate (\S+)/gm)].flatMap(([, words = ""]) => words.split("|"));
  expect(new Set(usage)).toEqual(new Set([...Object.keys(KEYS), "status"]));
});

test.each<[string, Options, readonly string[], { readonly restarts: RegExp; readonly next?: RegExp }]>([
  ["admin-token", {}, ["admin-token"], { restarts: /^Nothing restarts/ }],
  ["api-key", { overlap: 7200 }, ["api-key", "--overlap", "7200"], { restarts: /^Nothing/ }],
  [
    "node-key",
    {},
    ["node-key"],
    { restarts: /orchestrator and this machine's agent restart/, next: /rotate keys node-key --finish/ },
  ],
  ["sandbox-seed", { finish: true }, ["sandbox-seed", "--finish"], { restarts: /restart/ }],
  ["seal-key", {}, ["seal-key"], { restarts: /agent restarts/ }],
])("`svc rotate keys %s` with %j runs the script with %j", (key, options, words, { restarts, next }) => {
  const rotation = rotationOf(key, options);
  expect(rotation.words).toEqual(words);
  expect(rotation.restarts).toMatch(restarts);
  if (next === undefined) expect(rotation.next).toBeUndefined();
  else expect(rotation.next).toMatch(next);
});

test.each([
  ["ca", {}, "there is no key 'ca'"],
  ["constructor", {}, "there is no key 'constructor'"],
  ["seal-key", { finish: true }, "seal-key takes no --finish"],
  ["node-key", { overlap: 5 }, "node-key takes no --overlap"],
])("`svc rotate keys %s` with %j is refused", (key, options, words) => {
  expect(() => rotationOf(key, options)).toThrow(words);
});

function checkoutWith(script: string): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-rotate-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "scripts"));
  writeFileSync(join(folder, "scripts/rotate"), `#!/bin/bash -p\n${script}`);
  chmodSync(join(folder, "scripts/rotate"), 0o755);
  return folder;
}

test("the script is told the instance, and its words are shown", async () => {
  const instance = readInstance("b", "/nowhere");
  const checkout = checkoutWith('echo "of $SVC_INSTANCE: $*"; echo done');
  expect(await runScript({ run, instance }, checkout, ["node-key", "--finish"])).toEqual([
    "of b: node-key --finish",
    "done",
  ]);
});

test("files of the checkout stay with the user who asked for root", async () => {
  const instance = readInstance("", "/nowhere");
  const checkout = checkoutWith('echo "$SUDO_UID $SUDO_GID [${SECRET:-}]"');
  const given = { SUDO_UID: "1000", SUDO_GID: "1001", SECRET: "x" };
  expect(await runScript({ run, instance }, checkout, ["status"], given)).toEqual(["1000 1001 []"]);
});

test("a script that fails says why, and that it can be repeated", async () => {
  const instance = readInstance("", "/nowhere");
  const checkout = checkoutWith("echo 'the earlier value is still in use' >&2; exit 1");
  await expect(runScript({ run, instance }, checkout, ["node-key", "--finish"])).rejects.toMatchObject({
    message: "scripts/rotate node-key --finish: the earlier value is still in use",
    wayOut: expect.stringContaining("again") as string,
  });
});
