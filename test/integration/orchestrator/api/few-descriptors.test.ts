/** A program with a low limit of open files warns about it at its start, and says what to do. */

import { execFile } from "node:child_process";
import { expect, test } from "vitest";

const ROOT = new URL("../../../..", import.meta.url).pathname;
const SECRET = "0123456789abcdef0123456789abcdef";
const ENV = {
  PATH: process.env["PATH"],
  SVC_ADMIN_TOKEN: SECRET,
  SVC_ENCRYPTION_KEY: SECRET,
  SVC_NODE_KEY: SECRET,
  SVC_SEED: SECRET,
  // There is no such directory, so the program ends after the lines that the test reads.
  SVC_DATABASE: "/nowhere/svc.db",
};

/** Resolves to everything that an orchestrator with this limit of open files logs until it ends. */
function logOf(limit: number): Promise<string> {
  const script = `ulimit -n ${limit} && exec '${process.execPath}' --import tsx orchestrator/main.ts`;
  return new Promise((resolve) => {
    execFile("sh", ["-c", script], { cwd: ROOT, env: ENV, timeout: 200_000 }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

test("an orchestrator with 1 024 descriptors warns of it at its start, and one with 4 096 does not", async () => {
  const [few, enough] = await Promise.all([logOf(1_024), logOf(4_096)]);
  expect(few).toMatch(/"limit":1024.*limit of open files is low/);
  expect(few).toContain("could not start");
  expect(enough).not.toContain("limit of open files");
  expect(enough).toContain("could not start");
}, 240_000);
