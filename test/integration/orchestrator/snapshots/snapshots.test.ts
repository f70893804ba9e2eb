/** Snapshots on a fake agent: taken of a running sandbox, named, listed, started from and deleted. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import type { Cluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { forkingCluster } from "../lifecycle/forking.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await forkingCluster();
});
afterEach(() => cluster.stop());

const { create, eventsOf, read } = sandboxesOn(() => cluster);

interface SnapshotAnswer {
  readonly snapshotID: string;
  readonly names: string[];
}

const snapshot = (id: string, body: object = {}) => cluster.ask("POST", `/sandboxes/${id}/snapshots`, { body });
const remove = (id: string) => cluster.ask("DELETE", `/templates/${encodeURIComponent(id)}`);

async function taken(id: string, name?: string): Promise<SnapshotAnswer> {
  const answer = await snapshot(id, name === undefined ? {} : { name });
  expect(answer.status, answer.text).toBe(201);
  return answer.body as SnapshotAnswer;
}

async function listed(query = ""): Promise<string[]> {
  const answer = await cluster.ask("GET", `/snapshots${query}`);
  expect(answer.status, answer.text).toBe(200);
  return (answer.body as SnapshotAnswer[]).map(({ snapshotID }) => snapshotID);
}

describe("snapshots", () => {
  test("without a name are ids of their own; with one, a name and a tag", async () => {
    const { sandboxID } = await create();
    const plain = await taken(sandboxID);
    expect(plain).toEqual({ snapshotID: expect.stringMatching(/^[a-z0-9]{20}:default$/) as string, names: [] });
    const project = await slug();
    expect(await taken(sandboxID, "Snap")).toEqual({
      snapshotID: `${project}/snap:default`,
      names: [`${project}/snap`],
    });
    expect(await taken(sandboxID, `${project}/snap:v1`)).toEqual({
      snapshotID: `${project}/snap:v1`,
      names: [`${project}/snap`],
    });
    expect(await listed()).toEqual([`${project}/snap:v1`, `${project}/snap:default`, plain.snapshotID]);
    expect(await eventsOf(sandboxID)).toEqual(["created", "checkpointed", "checkpointed", "checkpointed"]);
    // The list of templates leaves snapshots out.
    const templates = (await cluster.ask("GET", "/v2/templates")).body as { names: string[] }[];
    expect(templates.flatMap(({ names }) => names)).toEqual(["base"]);
  });

  test("are found by name, tag, team, id and source, together and a page at a time", async () => {
    const [one, two] = [await create(), await create()];
    const project = await slug();
    await taken(one.sandboxID, "first:v1");
    await taken(one.sandboxID, "first:v2");
    const { snapshotID } = await taken(two.sandboxID);
    const name = (text: string) => listed(`?name=${encodeURIComponent(text)}`);
    expect(await name("first")).toEqual([`${project}/first:v2`, `${project}/first:v1`]);
    expect(await name("first:v1")).toEqual([`${project}/first:v1`]);
    expect(await name(`${project}/first:v2`)).toEqual([`${project}/first:v2`]);
    expect(await name(snapshotID)).toEqual([snapshotID]);
    expect(await name("no-such")).toEqual([]);
    expect(await name("other-team/first")).toEqual([]);
    expect(await name("base")).toEqual([]);
    for (const impossible of ["No Such Name!", "a/b/c", "first:", "first:v1:v2", "ünï", " "]) {
      expect(await name(impossible), impossible).toEqual([]);
    }
    expect(await listed(`?sandboxID=${two.sandboxID}`)).toEqual([snapshotID]);
    expect(await listed(`?sandboxID=${two.sandboxID}&name=first`)).toEqual([]);
    const page = await cluster.ask("GET", "/snapshots?limit=2");
    expect(page.body).toHaveLength(2);
    const token = page.headers.get("x-next-token") ?? "";
    const rest = await cluster.ask("GET", `/snapshots?limit=2&nextToken=${token}`);
    expect(rest.body).toHaveLength(1);
    expect(rest.headers.get("x-next-token")).toBeNull();
    // The last snapshot of the first page is deleted: the token still means the place where it was.
    const [, last] = page.body as { snapshotID: string }[];
    expect((await cluster.ask("DELETE", `/templates/${encodeURIComponent(last?.snapshotID ?? "")}`)).status).toBe(204);
    expect((await cluster.ask("GET", `/snapshots?limit=2&nextToken=${token}`)).body).toEqual(rest.body);
    const { key } = await cluster.addProject("Other");
    expect((await cluster.ask("GET", "/snapshots", { key })).body).toEqual([]);
  });

  test("start sandboxes with fresh tokens and their own environment, also when the source is gone", async () => {
    const source = await create({ metadata: { a: "1" }, envVars: { A: "1" } });
    const { snapshotID } = await taken(source.sandboxID, "snap");
    expect((await cluster.ask("DELETE", `/sandboxes/${source.sandboxID}`)).status).toBe(204);
    const made = await create({ templateID: snapshotID, envVars: { C: "3" } });
    const { body } = cluster.agent.starts.at(-1) ?? {};
    expect(body).toMatchObject({
      envs: { C: "3" },
      origin: { is: "snapshot", memory: true },
      accessToken: made.envdAccessToken,
    });
    expect(made.envdAccessToken).not.toBe(source.envdAccessToken);
    expect(await read(made.sandboxID)).toMatchObject({ alias: "snap", metadata: {} });
    await create({ templateID: "snap" });
    expect((await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "snap:v9" } })).status).toBe(404);
    const { key } = await cluster.addProject("Other");
    expect((await cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: snapshotID } })).status).toBe(404);
  });

  test("with an existing name replace the snapshot of that name, and the old one is removed when nothing needs it", async () => {
    const { sandboxID } = await create();
    await taken(sandboxID, "snap");
    const [first] = [...cluster.agent.snapshots.keys()];
    await taken(sandboxID, "snap");
    expect(await listed()).toHaveLength(1);
    await expect.poll(() => cluster.agent.removed).toEqual([first]);
  });

  test("can be deleted once, and not while sandboxes that were started from them exist", async () => {
    const { sandboxID } = await create();
    const { snapshotID } = await taken(sandboxID);
    const made = await create({ templateID: snapshotID });
    expect((await remove(snapshotID)).body).toMatchObject({ code: 400 });
    await cluster.ask("DELETE", `/sandboxes/${made.sandboxID}`);
    const { key } = await cluster.addProject("Other");
    const path = `/templates/${encodeURIComponent(snapshotID)}`;
    expect((await cluster.ask("DELETE", path, { key })).status).toBe(404);
    expect((await remove(snapshotID)).status).toBe(204);
    expect((await remove(snapshotID)).body).toMatchObject({ code: 404 });
    expect(await listed()).toEqual([]);
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
  });

  test("lose one tag, or all with their name", async () => {
    const { sandboxID } = await create();
    for (const tag of ["v1", "v2", "v3"]) await taken(sandboxID, `snap:${tag}`);
    const project = await slug();
    expect((await remove(`${project}/snap:v1`)).status).toBe(204);
    expect((await remove(`${project}/snap:v1`)).status).toBe(404);
    expect(await listed()).toEqual([`${project}/snap:v3`, `${project}/snap:v2`]);
    expect((await remove("snap")).status).toBe(204);
    expect(await listed()).toEqual([]);
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
    // The name is free again.
    await taken(sandboxID, "snap");
  });

  test("requested twice at once are taken once, and the second request gets 409", async () => {
    const { sandboxID } = await create();
    let go: (() => void) | undefined;
    cluster.agent.onCheckpoint = async (_request, take) => {
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      take();
    };
    const first = snapshot(sandboxID);
    await expect.poll(() => go).toBeDefined();
    expect((await snapshot(sandboxID)).body).toMatchObject({ code: 409 });
    go?.();
    expect((await first).status).toBe(201);
  });

  test.each([
    ["a/b/c", 400],
    ["some-other-team/snap", 400],
    ["snap:a:b", 400],
    ["sn ap", 400],
  ])("the name '%s' is refused", async (name, status) => {
    const { sandboxID } = await create();
    expect((await snapshot(sandboxID, { name })).status).toBe(status);
    expect(cluster.agent.snapshots.size).toBe(0);
  });

  test("of a paused or missing sandbox are refused; a failure leaves no name", async () => {
    const { sandboxID } = await create();
    cluster.agent.onCheckpoint = () => {
      throw new AppError("snapshot_failed", "io_uring");
    };
    expect((await snapshot(sandboxID, { name: "snap" })).body).toMatchObject({ error_code: "snapshot_failed" });
    expect((await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "snap" } })).status).toBe(404);
    expect(await listed()).toEqual([]);
    await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`);
    expect((await snapshot(sandboxID)).body).toMatchObject({ code: 409 });
    expect((await snapshot("inosuchsandbox")).status).toBe(404);
  });

  test("stay over a restart and over heartbeats", async () => {
    const { sandboxID } = await create();
    const { snapshotID } = await taken(sandboxID, "snap");
    await cluster.restart();
    for (let beat = 0; beat < 3; beat++) {
      await cluster.agent.beat();
      await new Promise((resolve) => setTimeout(resolve, 80));
    }
    expect(cluster.agent.snapshots.size).toBe(1);
    await create({ templateID: snapshotID });
  });
});

async function slug(): Promise<string> {
  const admin = { key: null, headers: { "x-admin-token": "test-admin-token-0001" } };
  const projects = (await cluster.ask("GET", "/admin/projects", admin)).body as { teamID: string; slug: string }[];
  return projects.find(({ teamID }) => teamID === cluster.teamId)?.slug ?? "";
}
