/** Volumes of a node and records that do not fit together: what is reported, what is deleted, and what an operator does. */

import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Volume } from "e2b";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { StorageReport } from "../../../../shared/api/storage.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { reconcileEveryMs: 10, orphanGraceMs: 50 } });
});
afterAll(() => cluster.stop());

const admin = (method: string, path: string, body?: unknown) =>
  cluster.ask(method, path, {
    key: null,
    headers: { "x-admin-token": ADMIN_TOKEN },
    ...(body === undefined ? {} : { body }),
  });
const here = async () => (await admin("GET", "/admin/storage")).body as StorageReport;
const unknown = async () => (await here()).nodes[0]?.unknownVolumes.map(({ volumeID }) => volumeID);
const missing = async () => (await here()).nodes[0]?.missingVolumes;
const problems = async (kind: string) =>
  new RegExp(`^svc_volume_problems\\{node="n1",kind="${kind}"\\} (\\d+)$`, "m").exec(
    (await admin("GET", "/metrics")).text,
  )?.[1];
const has = (id: string) => cluster.agent.volumes.list().some((each) => each.id === id);
const route = (id: string, node = "n1") => `/admin/nodes/${node}/volumes/${id}`;

/** A volume of the node as a database has it that was restored from an older copy: not at all. */
async function strange(): Promise<string> {
  const id = randomUUID();
  await cluster.agent.volumes.make(id, 64);
  await writeFile(join(cluster.agent.volumes.folder, id, "files", "kept"), "somebody's data");
  return id;
}

test("a volume without a record is reported and kept, and an operator gives it to a project", async () => {
  const id = await strange();
  await expect.poll(unknown).toEqual([id]);
  expect((await here()).nodes[0]?.unknownVolumes).toEqual([{ volumeID: id, sizeMB: 64, usedBytes: 0 }]);
  expect([await problems("unknown"), has(id)]).toEqual(["1", true]);

  const body = { teamID: cluster.teamId, name: "found" };
  expect((await admin("POST", route(id), { ...body, teamID: randomUUID() })).status).toBe(404);
  expect((await admin("POST", route(id, "no-such-node"), body)).status).toBe(404);
  expect((await admin("POST", route(randomUUID()), body)).status).toBe(404);
  expect((await admin("POST", route(id), body)).body).toEqual({ volumeID: id, name: "found" });
  await expect.poll(() => problems("unknown")).toBe("0");
  const volume = await Volume.connect(id, { apiUrl: cluster.url, apiKey: cluster.key });
  expect(await volume.readFile("/kept", { apiUrl: cluster.url })).toBe("somebody's data");

  // It is nobody's no longer, so the operator's routes leave it alone.
  expect((await admin("POST", route(id), body)).status).toBe(409);
  expect((await admin("DELETE", route(id))).status).toBe(409);
  const other = await strange();
  expect((await admin("POST", route(other), body)).status).toBe(409);
  expect((await admin("DELETE", route(other))).status).toBe(204);
  expect([has(id), has(other)]).toEqual([true, false]);
  expect((await admin("DELETE", route(other))).status).toBe(404);
});

test("a volume that its node made after the creation was given up is deleted", async () => {
  const asked: string[] = [];
  cluster.agent.volumes.onMake = (id) => {
    asked.push(id);
    throw new AppError("unavailable", "the answer is lost");
  };
  onTestFinished(() => {
    cluster.agent.volumes.onMake = () => undefined;
  });
  expect((await cluster.ask("POST", "/volumes", { body: { name: "late" } })).status).toBe(503);
  await expect.poll(() => cluster.database.query("select id from volumes where state <> 'ready'")).toEqual([]);
  const [id = ""] = asked;
  const stranger = await strange();
  await cluster.agent.volumes.make(id, 64);
  await expect.poll(() => has(id)).toBe(false);
  await expect.poll(unknown).toEqual([stranger]);
  expect((await admin("DELETE", route(stranger))).status).toBe(204);
});

test("a volume that its node does not have is reported, and its record stays", async () => {
  const { volumeID } = (await cluster.ask("POST", "/volumes", { body: { name: "lost" } })).body as { volumeID: string };
  await cluster.agent.volumes.lose(volumeID);
  await expect.poll(missing).toEqual([volumeID]);
  expect(await problems("missing")).toBe("1");
  expect((await cluster.ask("GET", `/volumes/${volumeID}`)).status).toBe(200);
  expect((await cluster.ask("DELETE", `/volumes/${volumeID}`)).status).toBe(204);
  await expect.poll(() => problems("missing")).toBe("0");
});

test("a node that does not list its volumes changes nothing", async () => {
  const id = await strange();
  await expect.poll(unknown).toEqual([id]);
  cluster.agent.volumes.onList = () => {
    throw new AppError("not_found", "no route GET /v1/volumes");
  };
  onTestFinished(() => {
    cluster.agent.volumes.onList = () => undefined;
  });
  expect((await admin("DELETE", route(id))).status).toBe(404);
  expect([await unknown(), has(id)]).toEqual([[id], true]);
});
