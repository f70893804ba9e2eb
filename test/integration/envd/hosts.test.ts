/** /etc/hosts of a sandbox over a memory dump, as Docker treats it: a restored container has a new one. */

import { randomUUID } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type RunningEnvd, runEnvd } from "./running-envd.ts";

const CONTROL = { "Svc-Node-Token": "control" };
const FRESH = "127.0.0.1\tlocalhost\n127.0.1.1\tsandbox\n";
const EDITED = `${FRESH}10.1.2.3\tdb.internal\n`;

let envd: RunningEnvd;
let file: string;
beforeEach(async () => {
  envd = await runEnvd({ controlToken: "control" });
  file = join(envd.root, "etc/hosts");
  writeFileSync(file, FRESH);
  await init(randomUUID());
});
afterEach(() => envd.stop());

async function post(path: string, body?: unknown): Promise<void> {
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { ...CONTROL, "Content-Type": "application/json" };
  expect((await fetch(`${envd.url}${path}`, { method: "POST", headers, ...json })).status).toBe(204);
}

const init = (executionId: string) => post("/init", { sandboxId: "i1", executionId });
const now = () => readFileSync(file, "utf8");

test.each([
  ["longer", EDITED],
  ["shorter", "127.0.0.1 localhost\n"],
])("a restored sandbox has the names that its programs wrote to /etc/hosts: a %s file", async (_, edited) => {
  writeFileSync(file, edited);
  await post("/watches/suspend");
  // The restore: Docker mounts a file of its own.
  writeFileSync(file, FRESH);
  const { ino } = statSync(file);
  await init(randomUUID());
  expect([now(), statSync(file).ino]).toEqual([edited, ino]);
});

test("what programs write to /etc/hosts after a dump, or without one, stays", async () => {
  await post("/watches/suspend");
  await post("/watches/resume");
  writeFileSync(file, EDITED);
  await init(randomUUID());
  await post("/watches/suspend");
  await init(randomUUID());
  expect(now()).toBe(EDITED);
  writeFileSync(file, FRESH);
  await init(randomUUID());
  expect(now()).toBe(FRESH);
});
