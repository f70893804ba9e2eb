/** Python clients of mid 2025 fail at fields that they do not know. */

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { sharedEnvd } from "./running-envd.ts";

const { envd } = sharedEnvd();
const LEGACY = "connect-python";

beforeAll(() => {
  mkdirSync(join(envd.home, "d/inner"), { recursive: true });
  writeFileSync(join(envd.home, "d/file"), "12345");
  symlinkSync("file", join(envd.home, "d/link"));
  symlinkSync("nothing", join(envd.home, "d/open"));
});

const call = async (method: string, message: object, agent = LEGACY) => {
  const response = await fetch(`${envd.url}/filesystem.Filesystem/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", "user-agent": agent },
    body: JSON.stringify(message),
  });
  return { notice: response.headers.get("x-e2b-legacy-sdk"), body: (await response.json()) as Record<string, unknown> };
};
const entry = (path: string, type?: string) => {
  const short = { name: path.split("/").at(-1), path: join(envd.home, path) };
  return type === undefined ? short : { ...short, type: `FILE_TYPE_${type}` };
};

test.each([
  ["Stat", { path: "d/file" }, () => entry("d/file", "FILE")],
  ["MakeDir", { path: "made" }, () => entry("made", "DIRECTORY")],
  ["Move", { source: "made", destination: "moved" }, () => entry("moved", "DIRECTORY")],
])("%s answers old clients with name, type and path alone", async (method, message, expected) => {
  expect(await call(method, message)).toEqual({ notice: "true", body: { entry: expected() } });
});

test("a listing for old clients has the three fields of each entry, and no kind for a link that leads nowhere", async () => {
  const { notice, body } = await call("ListDir", { path: "d", depth: 1 });
  expect(notice).toBe("true");
  expect(body.entries).toEqual([
    entry("d/file", "FILE"),
    entry("d/inner", "DIRECTORY"),
    entry("d/link", "FILE"),
    entry("d/open"),
  ]);
});

test("events that old clients fetch have no entry", async () => {
  const { body } = await call("CreateWatcher", { path: "d", includeEntry: true });
  writeFileSync(join(envd.home, "d/written"), "x");
  await expect
    .poll(async () => (await call("GetWatcherEvents", body)).body.events)
    .toContainEqual({ name: "written", type: "EVENT_TYPE_CREATE" });
  await call("RemoveWatcher", body);
});

test("other clients get all fields and no notice", async () => {
  for (const agent of ["connect-python/1.0", "e2b-python-sdk/1.5.3", "node"]) {
    const { notice, body } = await call("Stat", { path: "d/file" }, agent);
    expect([notice, body.entry]).toEqual([null, expect.objectContaining({ size: "5", owner: "root" })]);
  }
});
