/** Fork and snapshots on a fake agent: copies of a running sandbox, which goes on as if nothing had happened. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox, SandboxDetail } from "../../../shared/api/sandbox-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { type Cluster, startCluster } from "../../support/fakes/cluster.ts";

let cluster: Cluster;
const never = () => new Promise<void>(() => undefined);

beforeEach(async () => {
  cluster = await startCluster({
    config: { patienceMs: 300, captureTimeoutMs: 1_000, orphanGraceMs: 100, maxProjectSandboxes: 20 },
  });
});
afterEach(() => cluster.stop());

interface ForkAnswer {
  readonly sandbox?: Sandbox;
  readonly error?: { readonly code: number; readonly message: string };
}
interface SnapshotAnswer {
  readonly snapshotID: string;
  readonly names: string[];
}

async function create(body: object = {}): Promise<Sandbox> {
  const answer = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });
  expect(answer.status, answer.text).toBe(201);
  return answer.body as Sandbox;
}

const fork = (id: string, body: object = {}) => cluster.ask("POST", `/sandboxes/${id}/fork`, { body });
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

async function read(id: string): Promise<SandboxDetail> {
  return (await cluster.ask("GET", `/sandboxes/${id}`)).body as SandboxDetail;
}

async function eventsOf(id: string): Promise<string[]> {
  const list = (await cluster.ask("GET", `/events/sandboxes/${id}?orderAsc=true`)).body as { type: string }[];
  return list.map(({ type }) => type.replace("sandbox.lifecycle.", ""));
}

describe("fork", () => {
  test("gives copies with fresh ids and tokens and all else the same, and leaves the source as it was", async () => {
    const source = await create({
      timeout: 900,
      metadata: { a: "1" },
      envVars: { B: "2" },
      network: { allowPublicTraffic: false },
      autoPause: true,
      autoResume: { enabled: true },
    });
    const before = await read(source.sandboxID);
    const answer = await fork(source.sandboxID, { count: 3 });
    expect(answer.status, answer.text).toBe(201);
    const forks = answer.body as ForkAnswer[];
    expect(forks).toHaveLength(3);
    const sandboxes = forks.map(({ sandbox }) => sandbox as Sandbox);
    const all = [source, ...sandboxes];
    for (const key of ["sandboxID", "envdAccessToken", "trafficAccessToken"] as const) {
      expect(new Set(all.map((each) => each[key])).size, key).toBe(4);
    }
    expect(await read(source.sandboxID)).toEqual(before);
    for (const each of sandboxes) {
      const detail = await read(each.sandboxID);
      const { metadata, network, lifecycle, templateID, alias } = before;
      expect(detail).toMatchObject({ metadata, network, lifecycle, templateID, alias, state: "running" });
      expect(Math.round((Date.parse(detail.endAt) - Date.now()) / 1000)).toBe(300);
      const { body } = cluster.agent.starts.find((start) => start.body.sandboxId === each.sandboxID) ?? {};
      expect(body).toMatchObject({
        envs: { B: "2" },
        accessToken: each.envdAccessToken,
        onTimeout: "pause",
        origin: { is: "snapshot", memory: true },
        build: { image: `snapshot:${body?.origin?.snapshotId}` },
      });
    }
    expect(cluster.agent.live.size).toBe(4);
    expect(await eventsOf(source.sandboxID)).toEqual(["created", "checkpointed"]);
    // The checkpoint was for the forks alone.
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
    expect(cluster.agent.removed).toHaveLength(1);
  });

  test("keeps the source routed while it is copied", async () => {
    const { sandboxID } = await create();
    let during = "";
    cluster.agent.onCheckpoint = async (_capture, take) => {
      const headers = { "svc-sandbox-id": sandboxID, "svc-sandbox-port": "1" };
      during = await fetch(`${cluster.edgeUrl}/`, { headers }).then((response) => response.text());
      expect((await read(sandboxID)).state).toBe("running");
      take();
    };
    expect((await fork(sandboxID)).status).toBe(201);
    expect(during).not.toBe("");
    expect(during).not.toContain("The sandbox was not found");
  });

  test("reports each failure in its place", async () => {
    const { sandboxID } = await create();
    let count = 0;
    cluster.agent.onStart = (_start, run) => {
      if (++count === 2) throw new AppError("snapshot_corrupt", "a page is damaged");
      run();
    };
    await cluster.restart({ forkConcurrency: 1 });
    await cluster.agent.beat();
    const forks = (await fork(sandboxID, { count: 3, timeout: 60 })).body as ForkAnswer[];
    expect(forks.map(({ sandbox, error }) => [sandbox !== undefined, error !== undefined])).toEqual([
      [true, false],
      [false, true],
      [true, false],
    ]);
    expect(forks[1]?.error).toMatchObject({
      code: 500,
      message: expect.stringContaining("a page is damaged") as string,
    });
  });

  test("is refused before anything is tried: count, time-out, limit, state, owner", async () => {
    const { sandboxID } = await create();
    for (const body of [{ count: 0 }, { count: 101 }, { count: 20 }, { timeout: 0 }, { timeout: -1 }]) {
      expect((await fork(sandboxID, body)).body, JSON.stringify(body)).toMatchObject({ code: 400 });
    }
    expect((await fork("inosuchsandbox")).status).toBe(404);
    const { key } = await cluster.addProject("Other");
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/fork`, { key })).status).toBe(404);
    await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`);
    expect((await fork(sandboxID)).body).toMatchObject({
      code: 409,
      message: expect.stringContaining("is paused and cannot be forked; resume it first") as string,
    });
    expect(cluster.agent.starts).toHaveLength(1);
  });

  test("each fork beyond the limit gets its own 429", async () => {
    await cluster.restart({ maxProjectSandboxes: 3 });
    await cluster.agent.beat();
    const { sandboxID } = await create();
    await create();
    const forks = (await fork(sandboxID, { count: 2 })).body as ForkAnswer[];
    expect(forks.flatMap(({ error }) => (error === undefined ? [] : [error.code]))).toEqual([429]);
  });

  test.each(["snapshot_failed", "no_space", "node_busy"] as const)(
    "refused by the node with %s: the source runs on, the caller has the reason, nothing is left",
    async (code) => {
      const { sandboxID } = await create();
      const before = await read(sandboxID);
      cluster.agent.onCheckpoint = () => {
        throw new AppError(code, "because of a test");
      };
      const answer = await fork(sandboxID);
      expect(answer.body).toMatchObject({ error_code: code, code: answer.status });
      expect(await read(sandboxID)).toEqual(before);
      cluster.agent.onCheckpoint = (_capture, take) => take();
      expect((await fork(sandboxID)).status).toBe(201);
    },
  );

  test("when a node does not answer, the source runs on, and forks that the node made are removed", async () => {
    const { sandboxID } = await create();
    cluster.agent.onCheckpoint = async (_capture, take) => {
      take();
      await never();
    };
    await cluster.restart({ captureTimeoutMs: 100, patienceMs: 100 });
    await cluster.agent.beat();
    expect((await fork(sandboxID)).body).toMatchObject({ code: 503, error_code: "node_unreachable" });
    expect((await read(sandboxID)).state).toBe("running");
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
  });
});

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
    // Not among the templates.
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
    expect(await listed(`?sandboxID=${two.sandboxID}`)).toEqual([snapshotID]);
    expect(await listed(`?sandboxID=${two.sandboxID}&name=first`)).toEqual([]);
    const page = await cluster.ask("GET", "/snapshots?limit=2");
    expect(page.body).toHaveLength(2);
    const token = page.headers.get("x-next-token") ?? "";
    const rest = await cluster.ask("GET", `/snapshots?limit=2&nextToken=${token}`);
    expect(rest.body).toHaveLength(1);
    expect(rest.headers.get("x-next-token")).toBeNull();
    // The last of the first page is deleted: the token still means the place where it was.
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

  test("of a name that is there mean the new capture; the old one goes when nothing needs it", async () => {
    const { sandboxID } = await create();
    await taken(sandboxID, "snap");
    const [first] = [...cluster.agent.snapshots.keys()];
    await taken(sandboxID, "snap");
    expect(await listed()).toHaveLength(1);
    await expect.poll(() => cluster.agent.removed).toEqual([first]);
  });

  test("are deleted once, not while sandboxes started from them are there", async () => {
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

  test("two at once are one, and a 409", async () => {
    const { sandboxID } = await create();
    let go: (() => void) | undefined;
    cluster.agent.onCheckpoint = async (_capture, take) => {
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
