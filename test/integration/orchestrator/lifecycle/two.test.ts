/** Two orchestrators serve one database at the same time: what one has begun the other goes on with, and both say the same. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Pair, startPair } from "../../../support/cluster/pair.ts";
import { tarOf } from "../../../support/images/tar.ts";

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
}, 180_000);
afterAll(() => pair.stop(), 60_000);

async function create(by: 0 | 1, more: object = {}): Promise<string> {
  const made = await pair.ask(by, "POST", "/v2/sandboxes", { templateID: "base", timeout: 300, ...more });
  expect(made.status, made.text).toBe(201);
  return (made.body as { sandboxID: string }).sandboxID;
}

const stateAt = async (by: 0 | 1, id: string) => {
  const { status, body } = await pair.ask(by, "GET", `/sandboxes/${id}`);
  return status === 200 ? (body as { state: string }).state : status;
};
const both = async (id: string) => [await stateAt(0, id), await stateAt(1, id)];
const live = (id: string) =>
  pair.agents.flatMap((agent) => [...agent.live.values()]).filter(({ body }) => body.sandboxId === id).length;
async function list(by: 0 | 1): Promise<string[]> {
  const { body } = await pair.ask(by, "GET", "/v2/sandboxes");
  return (body as { sandboxID: string; state: string }[]).map(({ sandboxID, state }) => `${sandboxID} ${state}`).sort();
}

test("a sandbox is created by one, paused by the other, resumed and killed by the first, and both list the same", async () => {
  const id = await create(0);
  expect(await both(id)).toEqual(["running", "running"]);
  expect((await pair.ask(1, "POST", `/sandboxes/${id}/pause`)).status).toBe(204);
  expect(await both(id)).toEqual(["paused", "paused"]);
  const other = await create(1);
  expect(await list(0)).toEqual(await list(1));
  expect((await pair.ask(0, "POST", `/sandboxes/${id}/resume`, { timeout: 300 })).status).toBe(201);
  expect([await both(id), live(id)]).toEqual([["running", "running"], 1]);
  expect((await pair.ask(0, "DELETE", `/sandboxes/${id}`)).status).toBe(204);
  expect((await pair.ask(0, "DELETE", `/sandboxes/${other}`)).status).toBe(204);
  expect([await both(id), live(id)]).toEqual([[404, 404], 0]);
  expect((await pair.ask(1, "DELETE", `/sandboxes/${id}`)).status).toBe(404);
});

test("a pause at both at the same time takes one snapshot, and a resume at both starts one execution", async () => {
  const id = await create(1);
  const at = (method: string, path: string, body?: object) =>
    Promise.all(([0, 1] as const).map(async (by) => (await pair.ask(by, method, path, body)).status));
  const paused = await at("POST", `/sandboxes/${id}/pause`);
  expect(paused).toContain(204);
  expect(await both(id)).toEqual(["paused", "paused"]);
  const snapshots = pair.agents.flatMap((agent) => [...agent.snapshots.values()]);
  expect(snapshots.filter(({ sandboxId }) => sandboxId === id)).toHaveLength(1);
  const connected = await at("POST", `/sandboxes/${id}/connect`, { timeout: 300 });
  expect(connected.every((status) => status === 200 || status === 201)).toBe(true);
  expect([await both(id), live(id)]).toEqual([["running", "running"], 1]);
  await pair.ask(0, "DELETE", `/sandboxes/${id}`);
});

test("an expired sandbox is ended once, whoever looks first", async () => {
  const id = await create(0, { timeout: 1 });
  await expect.poll(() => both(id), { timeout: 30_000 }).toEqual([404, 404]);
  const ends = async () => {
    const { body } = await pair.ask(1, "GET", `/events/sandboxes/${id}`);
    const killed = (body as { type: string }[]).filter(({ type }) => type.endsWith("killed"));
    return [killed.length, live(id)];
  };
  // It is "not found" from the decision on, and has its event when its node has stopped it.
  await expect.poll(ends, { timeout: 30_000 }).toEqual([1, 0]);
});

test("a node that reports to one of them is drained by the other, and no sandbox is placed there from then on", async () => {
  const nodes = async (by: 0 | 1) =>
    ((await pair.admin(by, "GET", "/nodes")).body as { id: string; status: string }[]).map(({ id, status }) => [
      id,
      status,
    ]);
  await expect
    .poll(() => nodes(0))
    .toEqual([
      ["n1", "ready"],
      ["n2", "ready"],
    ]);
  expect((await pair.admin(1, "POST", "/nodes/n1", { status: "draining" })).status).toBe(204);
  expect(await nodes(0)).toEqual(await nodes(1));
  const ids = await Promise.all(Array.from({ length: 6 }, (_, index) => create(index % 2 === 0 ? 0 : 1)));
  expect(pair.agents[0]?.live.size).toBe(0);
  expect((await pair.admin(0, "POST", "/nodes/n1", { status: "ready" })).status).toBe(204);
  expect(await nodes(1)).toContainEqual(["n1", "ready"]);
  for (const id of ids) await pair.ask(1, "DELETE", `/sandboxes/${id}`);
});

test("when an orchestrator is killed, its node reports to the other one, and nothing is lost", async () => {
  const [first] = pair.orchestrators;
  const ids = await Promise.all(Array.from({ length: 6 }, () => create(0)));
  await first.killAndStart();
  for (const id of ids) expect(await both(id)).toEqual(["running", "running"]);
  const [agent] = pair.agents;
  // It has met the dead one, or its next start.
  await expect
    .poll(
      () =>
        agent?.beat().then(
          () => true,
          () => false,
        ),
      { timeout: 60_000 },
    )
    .toBe(true);
  const made = await create(1);
  for (const id of [...ids, made]) expect((await pair.ask(0, "DELETE", `/sandboxes/${id}`)).status).toBe(204);
  for (const id of [...ids, made]) expect([await both(id), live(id)]).toEqual([[404, 404], 0]);
});

test("files of a COPY step reach the node from the orchestrator that got them, when another one with a disk of its own starts the build", async () => {
  const files = mkdtempSync(join(tmpdir(), "svc-files-"));
  onTestFinished(() => rmSync(files, { recursive: true, force: true }));
  const third = await pair.startThird({ SVC_FILES_DIRECTORY: files });
  onTestFinished(() => third.stop());
  const [first] = pair.orchestrators;
  const { teamID } = (await pair.admin(0, "POST", "/admin/projects", { name: "copies" })).body as { teamID: string };
  const made = await pair.admin(0, "POST", `/admin/teams/${teamID}/api-keys`, { name: "k" });
  const headers = { "x-api-key": (made.body as { key: string }).key, "content-type": "application/json" };
  const ask = async ({ url }: { readonly url: string }, method: string, path: string, body?: object) => {
    const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const text = await response.text();
    return { status: response.status, body: (text === "" ? undefined : JSON.parse(text)) as unknown };
  };

  const requested = await ask(third, "POST", "/v3/templates", { name: "app" });
  const { templateID, buildID } = requested.body as { templateID: string; buildID: string };
  const hash = "c".repeat(64);
  const place = async (at: { readonly url: string }) =>
    (await ask(at, "GET", `/templates/${templateID}/files/${hash}`)).body as { present: boolean; url: string };
  const bytes = tarOf({ "a.txt": "hello" });
  const put = await fetch((await place(first)).url, { method: "PUT", body: new Uint8Array(bytes) });
  expect(put.status).toBe(200);
  // A client that asks the other one uploads the files there as well.
  expect([(await place(first)).present, (await place(third)).present]).toEqual([true, false]);

  const steps = [{ type: "COPY", args: ["a.txt", "/app/", "", ""], filesHash: hash }];
  const started = await ask(third, "POST", `/v2/templates/${templateID}/builds/${buildID}`, { steps });
  expect(started, JSON.stringify(started.body)).toMatchObject({ status: 202 });
  const status = () => ask(third, "GET", `/templates/${templateID}/builds/${buildID}/status`);
  await expect.poll(status).toMatchObject({ body: { status: "ready" } });
  const [copied] = pair.agents.flatMap(({ builds }) => builds.get(buildID) ?? []);
  expect(copied?.files.get(hash)?.equals(bytes)).toBe(true);
});

test("an orchestrator with another key than those that run is refused by a sentence that names the setting", async () => {
  await expect(pair.startThird({ SVC_ENCRYPTION_KEY: "another-encryption-key" })).rejects.toThrow(
    /SVC_ENCRYPTION_KEY is another than that of the orchestrator .* which uses the same database/,
  );
  await expect(
    pair.startThird({ SVC_SEED: "test-seed-0000000002", SVC_SEED_PREVIOUS: "test-seed-0000000001" }),
  ).rejects.toThrow(/SVC_SEED is not known to the orchestrator .* add it there to SVC_SEED_PREVIOUS first/);
});
