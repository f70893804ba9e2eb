/** Volumes over the public API: records, limits, what a node does about them, and repairs. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { until } from "../../../support/runner/until.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ agents: 2, config: { volumeSizeMb: 100 } });
});
afterAll(() => cluster.stop());

interface Shown {
  readonly volumeID: string;
  readonly name: string;
  readonly token: string;
}

const named = () => `v-${randomUUID().slice(0, 8)}`;

async function create(name = named(), key?: string): Promise<Shown> {
  const answer = await cluster.ask("POST", "/volumes", { body: { name }, ...(key === undefined ? {} : { key }) });
  expect(answer.status, answer.text).toBe(201);
  return answer.body as Shown;
}

/** Makes a volume while every other node is drained. */
async function createOn(nodeId: string): Promise<Shown> {
  const others = cluster.agents.filter((agent) => agent.nodeId !== nodeId);
  const want = async (status: string) => {
    for (const other of others) {
      const headers = { "x-admin-token": ADMIN_TOKEN };
      const answer = await cluster.ask("POST", `/nodes/${other.nodeId}`, { key: null, headers, body: { status } });
      expect(answer.status, answer.text).toBe(204);
    }
  };
  await want("draining");
  try {
    return await create();
  } finally {
    await want("ready");
  }
}

const homeOf = ({ volumeID }: Shown) => {
  const agent = cluster.agents.find(({ volumes }) => volumes.list().some(({ id }) => id === volumeID));
  if (agent === undefined) throw new Error(`no agent has volume ${volumeID}`);
  return agent;
};

const nothingUnfinished = () =>
  until(async () => (await cluster.database.query("select id from volumes where state <> 'ready'")).length === 0, {
    what: "the deletion of every unfinished volume",
    timeoutMs: 30_000,
  });

const gone = (agent: FakeAgent, { volumeID }: Shown) =>
  until(() => !agent.volumes.list().some(({ id }) => id === volumeID), {
    what: "the deletion of the volume on its node",
    timeoutMs: 30_000,
  });

const start = (body: object) => cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });

test("a volume is created on one node, read with a token that differs each time, listed and deleted", async () => {
  const volume = await create();
  expect(volume).toEqual({
    volumeID: volume.volumeID,
    name: volume.name,
    token: expect.any(String) as string,
    domain: `localhost:${new URL(cluster.edgeUrl).port}`,
  });
  const read = (await cluster.ask("GET", `/volumes/${volume.volumeID}`)).body as Shown;
  expect(read).toMatchObject({ volumeID: volume.volumeID, name: volume.name });
  expect(read.token).not.toBe(volume.token);
  expect((await cluster.ask("GET", "/volumes")).body).toContainEqual({ volumeID: volume.volumeID, name: volume.name });
  const home = homeOf(volume);
  expect(home.volumes.list().find(({ id }) => id === volume.volumeID)?.sizeMb).toBe(100);

  expect((await cluster.ask("DELETE", `/volumes/${volume.volumeID}`)).status).toBe(204);
  expect(home.volumes.list().some(({ id }) => id === volume.volumeID)).toBe(false);
  for (const method of ["GET", "DELETE"]) {
    expect((await cluster.ask(method, `/volumes/${volume.volumeID}`)).body).toMatchObject({ code: 404 });
  }
  expect((await cluster.ask("GET", "/volumes")).body).not.toContainEqual(
    expect.objectContaining({ name: volume.name }),
  );
});

test("wrong names and ids, names that exist, and volumes of other projects are refused", async () => {
  const volume = await create();
  for (const name of ["", "a b", "ü", "x".repeat(129)]) {
    const answer = await cluster.ask("POST", "/volumes", { body: { name } });
    expect(answer.body).toMatchObject({ code: 400, message: "Invalid volume name" });
  }
  expect((await cluster.ask("POST", "/volumes", { body: { name: volume.name } })).body).toMatchObject({
    code: 409,
    message: `Volume with name '${volume.name}' already exists`,
  });
  for (const method of ["GET", "DELETE"]) {
    for (const id of ["nothing", "x".repeat(500), "00000000-0000-4000-8000-00000000000g"]) {
      expect((await cluster.ask(method, `/volumes/${id}`)).body).toMatchObject({ code: 404, error_code: "not_found" });
    }
  }
  const other = await cluster.addProject("Other");
  for (const method of ["GET", "DELETE"]) {
    expect((await cluster.ask(method, `/volumes/${volume.volumeID}`, { key: other.key })).status).toBe(404);
  }
  await create(volume.name, other.key);
});

test("two requests for one name at the same time make one volume", async () => {
  const name = named();
  const answers = await Promise.all([1, 2, 3].map(() => cluster.ask("POST", "/volumes", { body: { name } })));
  expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 409, 409]);
});

test("limits of a project are not exceeded by ten requests at once, and the refusal names limit and use", async () => {
  const { key } = await cluster.addProject("Limited");
  await cluster.restart({ maxProjectVolumes: 3 });
  onTestFinished(() => cluster.restart({ maxProjectVolumes: 20 }));
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, at) => cluster.ask("POST", "/volumes", { key, body: { name: `v${at}` } })),
  );
  const refused = answers.filter(({ status }) => status === 403);
  expect([answers.filter(({ status }) => status === 201).length, refused.length]).toEqual([3, 7]);
  expect(refused[0]?.body).toMatchObject({
    message:
      "the project may have 3 volumes and has 3: delete one, or ask the operator of the platform for a higher limit",
  });
  await cluster.restart({ maxProjectVolumes: 20, projectVolumeQuotaMb: 350 });
  expect((await cluster.ask("POST", "/volumes", { key, body: { name: "more" } })).body).toMatchObject({
    code: 403,
    message: expect.stringContaining("350 MiB of volumes and has 300") as string,
  });
  await cluster.restart({ projectVolumeQuotaMb: 0 });
});

test("a volume that its node cannot make leaves nothing", async () => {
  const made: string[] = [];
  const refuse = (id: string) => {
    made.push(id);
    throw new AppError("no_space", "the node's disk is short");
  };
  for (const { volumes } of cluster.agents) volumes.onMake = refuse;
  const name = named();
  const answer = await cluster.ask("POST", "/volumes", { body: { name } });
  for (const { volumes } of cluster.agents) volumes.onMake = () => undefined;
  expect(answer.body).toMatchObject({ code: 507, message: "the node's disk is short" });
  await nothingUnfinished();
  await create(name);
});

test("a deletion that the node does not confirm is repeated, and the name is free at once", async () => {
  const volume = await create();
  const home = homeOf(volume);
  home.volumes.onDelete = () => {
    throw new AppError("unavailable", "not now");
  };
  expect((await cluster.ask("DELETE", `/volumes/${volume.volumeID}`)).status).toBe(204);
  expect((await cluster.ask("GET", `/volumes/${volume.volumeID}`)).status).toBe(404);
  await create(volume.name);
  home.volumes.onDelete = () => undefined;
  await gone(home, volume);
});

test("an orchestrator that is killed while a volume is created or deleted finishes the deletion", async () => {
  const [begun, ended] = [await create(), await create()];
  const [home, other] = [homeOf(begun), homeOf(ended)];
  // As a crash leaves them: the one before its node has answered, the other one after its deletion has begun.
  await cluster.restart({}, async () => {
    await cluster.database.query(
      `update volumes set state = 'creating', updated_at = 0 where id = '${begun.volumeID}'`,
    );
    await cluster.database.query(
      `update volumes set state = 'deleting', updated_at = 0 where id = '${ended.volumeID}'`,
    );
  });
  await gone(home, begun);
  await gone(other, ended);
  await nothingUnfinished();
});

test("a sandbox with volumes starts on their node with them, forks share them, and reads name them", async () => {
  const volume = await create();
  const home = homeOf(volume);
  const volumeMounts = [
    { name: volume.name, path: "/data" },
    { name: volume.name, path: "/mnt/again" },
  ];
  const started = await start({ volumeMounts });
  expect(started.status, started.text).toBe(201);
  const { sandboxID } = started.body as { sandboxID: string };
  const volumes = [
    { volumeId: volume.volumeID, path: "/data" },
    { volumeId: volume.volumeID, path: "/mnt/again" },
  ];
  expect(home.starts.at(-1)?.body).toMatchObject({ sandboxId: sandboxID, volumes });
  expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body).toMatchObject({ volumeMounts });

  const forks = (await cluster.ask("POST", `/sandboxes/${sandboxID}/fork`, { body: {} })).body as {
    sandbox: { sandboxID: string };
  }[];
  expect(home.starts.at(-1)?.body).toMatchObject({ sandboxId: forks[0]?.sandbox.sandboxID, volumes });
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/connect`, { body: { timeout: 60 } })).status).toBe(201);
  expect(home.starts.at(-1)?.body).toMatchObject({ sandboxId: sandboxID, volumes });

  const deletion = await cluster.ask("DELETE", `/volumes/${volume.volumeID}`);
  const ids = [sandboxID, forks[0]?.sandbox.sandboxID ?? ""].sort();
  expect(deletion.body).toMatchObject({
    code: 409,
    message: `Volume '${volume.name}' is mounted by sandboxes ${ids.join(", ")}: delete them first`,
  });
  for (const id of ids) await cluster.ask("DELETE", `/sandboxes/${id}`);
  expect((await cluster.ask("DELETE", `/volumes/${volume.volumeID}`)).status).toBe(204);
});

test("a snapshot keeps its volumes: copies mount them, others are refused with its memory, and no deletion passes", async () => {
  const [volume, second] = [await createOn("n1"), await createOn("n2")];
  const volumeMounts = [{ name: volume.name, path: "/data" }];
  const { sandboxID } = (await start({ volumeMounts })).body as { sandboxID: string };
  const taken = (await cluster.ask("POST", `/sandboxes/${sandboxID}/snapshots`, { body: {} })).body as {
    snapshotID: string;
  };
  await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
  const templateID = taken.snapshotID;
  const home = homeOf(volume);

  expect((await start({ templateID })).status).toBe(201);
  const volumes = [{ volumeId: volume.volumeID, path: "/data" }];
  expect(home.starts.at(-1)?.body).toMatchObject({ volumes, origin: { memory: true } });
  expect((await start({ templateID, volumeMounts })).status).toBe(201);
  expect(home.starts.at(-1)?.body).toMatchObject({ volumes, origin: { memory: true } });
  expect((await start({ templateID, volumeMounts: [] })).body).toMatchObject({ code: 400 });
  expect((await start({ templateID, volumeMounts: [], memory: false })).status).toBe(201);
  expect(home.starts.at(-1)?.body.volumes).toBeUndefined();
  const elsewhere = await start({ templateID, volumeMounts: [{ name: second.name, path: "/x" }], memory: false });
  expect(elsewhere.body).toMatchObject({ code: 400, message: expect.stringContaining("not reachable") as string });

  const list = (await cluster.ask("GET", "/v2/sandboxes")).body as { sandboxID: string }[];
  for (const one of list) await cluster.ask("DELETE", `/sandboxes/${one.sandboxID}`);
  const deletion = await cluster.ask("DELETE", `/volumes/${volume.volumeID}`);
  expect(deletion.body).toMatchObject({ code: 409, message: expect.stringContaining("snapshot") as string });
  expect((await cluster.ask("DELETE", `/templates/${templateID}`)).status).toBe(204);
  expect((await cluster.ask("DELETE", `/volumes/${volume.volumeID}`)).status).toBe(204);
});

test("every wrong mount is named by its index in one error", async () => {
  const volume = await create();
  const { name } = volume;
  const before = cluster.agents.map(({ starts }) => starts.length);
  const volumeMounts = [
    { name, path: "/right" },
    { name: "no-such-volume", path: "/b" },
    { name, path: "/proc/self" },
    { name, path: "/usr" },
    { name, path: "/etc/hosts" },
    { name, path: "/right/below" },
    { name, path: "/right" },
    { name, path: "/with space" },
    { name, path: "/opt/fine" },
    { name, path: "/" },
    { name, path: "/svc" },
  ];
  const answer = await start({ volumeMounts });
  expect(answer.status).toBe(400);
  expect((answer.body as { message: string }).message.match(/volumeMounts\.\d+\.\w+/g)).toEqual(
    ["1.name", "2.path", "3.path", "4.path", "5.path", "6.path", "7.path", "9.path", "10.path"].map(
      (at) => `volumeMounts.${at}`,
    ),
  );
  expect(cluster.agents.map(({ starts }) => starts.length)).toEqual(before);
});

test("volumes of two nodes cannot be mounted together", async () => {
  const first = await createOn("n1");
  const other = await createOn("n2");
  const volumeMounts = [
    { name: first.name, path: "/a" },
    { name: other.name, path: "/b" },
  ];
  expect((await start({ volumeMounts })).body).toMatchObject({
    code: 400,
    message: expect.stringContaining("'volumeMounts.1.name' names a volume of another node") as string,
  });
});
