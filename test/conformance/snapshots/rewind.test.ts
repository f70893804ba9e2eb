/** A rewind as clients of the published SDK see it, and the example of the documentation. */

import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import { api, checkout, openPlatform } from "../../support/platform/platform.ts";
import { startCounter, startFileServer, visit } from "../../support/sandbox/pausing.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const PORT = 8000;

test("a sandbox that is rewound answers at the same address, to the same client, with the processes and files of then", async () => {
  const sandbox = await ownSandbox();
  await startFileServer(sandbox, PORT, "then");
  const counter = await startCounter(sandbox);
  const { snapshotId: snapshotID } = await sandbox.createSnapshot();
  const then = await counter.read();
  await sandbox.files.write("/tmp/later", "later");
  await expect.poll(() => counter.read(), { timeout: 90_000 }).toBeGreaterThan(then + 20);

  const begun = Date.now();
  const answer = await api(platform, "POST", `/sandboxes/${sandbox.sandboxId}/rewind`, { body: { snapshotID } });
  expect(answer.status, answer.text).toBe(200);
  expect(await sandbox.files.exists("/tmp/later")).toBe(false);
  // It counts at most ten times a second.
  const count = await counter.read();
  expect(count).toBeLessThan(then + 3 + (Date.now() - begun) / 100);
  expect(await visit(platform, sandbox, { port: PORT })).toEqual({ status: 200, text: "then" });

  await sandbox.pause();
  await api(platform, "POST", `/sandboxes/${sandbox.sandboxId}/rewind`, { body: { snapshotID } });
  expect((await Sandbox.getInfo(sandbox.sandboxId)).state).toBe("running");
  expect(await sandbox.files.exists("/tmp/later")).toBe(false);
  await sandbox.kill();
  expect(await Sandbox.deleteSnapshot(snapshotID)).toBe(true);
});

test("the program of the documentation that searches a tree of states finds the way", async () => {
  const page = await readFile(`${checkout}docs/using.md`, "utf8");
  const program = /## Rewind\n[^]*?```js\n([^]*?)```/.exec(page)?.[1] ?? "";
  // Beside the tests, where the SDK is found.
  const file = `${checkout}test/conformance/snapshots/tree-${process.pid}.mjs`;
  await writeFile(file, program);
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    expect(stdout.trim()).toBe("* 2, + 3");
  } finally {
    await rm(file);
  }
});
