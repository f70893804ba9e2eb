/** Snapshots, named, tagged and unnamed: any number of sandboxes can start from one. */

import { Sandbox, type SnapshotInfo } from "e2b";
import { describe, expect, onTestFinished, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { identityOf, startCounter, startFileServer, visit } from "../../support/sandbox/pausing.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

/** Removes the snapshot after the test, when the sandboxes made from it are gone. */
function kept(snapshot: SnapshotInfo): SnapshotInfo {
  onTestFinished(async () => {
    await Sandbox.deleteSnapshot(snapshot.snapshotId);
  });
  return snapshot;
}

const fresh = (name: string) => `${name}-${Date.now().toString(36)}`;

async function idsOf(paginator: ReturnType<typeof Sandbox.listSnapshots>): Promise<string[]> {
  const ids: string[] = [];
  while (paginator.hasNext) ids.push(...(await paginator.nextItems()).map(({ snapshotId }) => snapshotId));
  return ids;
}

test("an unnamed snapshot carries memory and disk into new sandboxes, which have their own environment", async () => {
  const source = await ownSandbox({ envs: { WHO: "source" }, metadata: { a: "1" } });
  const counter = await startCounter(source);
  await startFileServer(source, 8000, "from the snapshot");
  await source.files.write("kept.txt", "on disk");
  const process = await identityOf(source, counter.pid);
  const snapshot = kept(await source.createSnapshot());
  expect(snapshot.names).toEqual([]);
  expect(snapshot.snapshotId).toMatch(/^[a-z0-9]+:default$/);
  // The source was not restarted for the snapshot.
  expect(await identityOf(source, counter.pid)).toBe(process);
  const count = await counter.read();
  await expect.poll(() => counter.read()).toBeGreaterThan(count);

  const made = await ownSandbox({ template: snapshot.snapshotId, envs: { WHO: "made" } });
  expect(await made.files.read("kept.txt")).toBe("on disk");
  expect((await made.commands.run('echo "$WHO $E2B_SANDBOX_ID"')).stdout).toBe(`made ${made.sandboxId}\n`);
  expect((await visit(platform, made, { port: 8000 })).text).toBe("from the snapshot");
  const there = await counter.read(made);
  await expect.poll(() => counter.read(made)).toBeGreaterThan(there);
  expect((await made.getInfo()).metadata).toEqual({});
});

test("a server that listens on the source's own address alone is reached in copies, and after a pause to the disk", async () => {
  const source = await ownSandbox();
  await source.files.write("/tmp/www/hello.txt", "own address");
  const serving = "python3 -m http.server 8000 --directory /tmp/www --bind $(hostname -I | cut -d' ' -f1)";
  const handle = await source.commands.run(serving, { background: true, timeoutMs: 0 });
  await handle.disconnect();
  const answer = { status: 200, text: "own address" };
  await expect.poll(() => visit(platform, source, { port: 8000 })).toEqual(answer);

  const [fork] = await source.fork({ count: 1, timeoutMs: 300_000 });
  if (!(fork instanceof Sandbox)) throw new Error("no fork");
  onTestFinished(async () => {
    await fork.kill();
  });
  expect(await visit(platform, fork, { port: 8000 })).toEqual(answer);
  const { snapshotId } = kept(await fork.createSnapshot());
  const made = await ownSandbox({ template: snapshotId });
  expect(await visit(platform, made, { port: 8000 })).toEqual(answer);
  await api(platform, "POST", `/sandboxes/${made.sandboxId}/pause`, { body: { frozen: false } });
  await made.connect();
  expect(await visit(platform, made, { port: 8000 })).toEqual(answer);
});

test("a named snapshot is found by name, tag, id and source, and survives its source", async () => {
  const source = await ownSandbox();
  await source.files.write("kept.txt", "one");
  const name = fresh("snap");
  const first = kept(await source.createSnapshot({ name }));
  expect(first.names.some((each) => each.includes(name))).toBe(true);
  expect(first.snapshotId).toMatch(new RegExp(`/${name}:default$`));
  await source.files.write("kept.txt", "two");
  const second = kept(await source.createSnapshot({ name: `${name}:v2` }));
  expect(second.snapshotId).toMatch(new RegExp(`/${name}:v2$`));
  expect(await idsOf(Sandbox.listSnapshots({ name }))).toEqual([second.snapshotId, first.snapshotId]);
  expect(await idsOf(Sandbox.listSnapshots({ name: `${name}:v2` }))).toEqual([second.snapshotId]);
  expect(await idsOf(Sandbox.listSnapshots({ name: first.snapshotId }))).toEqual([first.snapshotId]);
  expect(await idsOf(source.listSnapshots())).toEqual([second.snapshotId, first.snapshotId]);
  expect(await idsOf(Sandbox.listSnapshots({ name: fresh("no-such") }))).toEqual([]);
  await source.kill();
  expect(await (await ownSandbox({ template: name })).files.read("kept.txt")).toBe("one");
  expect(await (await ownSandbox({ template: `${name}:v2` })).files.read("kept.txt")).toBe("two");
  expect((await refusal(Sandbox.create(`${name}:v3`))).message).toContain("v3");
});

test("a snapshot name that is used again means the new snapshot", async () => {
  const source = await ownSandbox();
  const name = fresh("again");
  await source.files.write("kept.txt", "old");
  await source.createSnapshot({ name });
  await source.files.write("kept.txt", "new");
  const { snapshotId } = kept(await source.createSnapshot({ name }));
  expect(await (await ownSandbox({ template: snapshotId })).files.read("kept.txt")).toBe("new");
});

test("two sandboxes from one snapshot have nothing to do with each other", async () => {
  const source = await ownSandbox();
  const { snapshotId } = kept(await source.createSnapshot());
  const [one, two] = await Promise.all([1, 2].map(() => ownSandbox({ template: snapshotId })));
  await one?.files.write("mine.txt", "one");
  expect(await two?.files.exists("mine.txt")).toBe(false);
  expect(await source.files.exists("mine.txt")).toBe(false);
});

test("a snapshot can be deleted once, and not while sandboxes that were made from it exist", async () => {
  const source = await ownSandbox();
  const { snapshotId } = await source.createSnapshot();
  const made = await ownSandbox({ template: snapshotId });
  expect(await refusal(Sandbox.deleteSnapshot(snapshotId))).toHaveProperty("statusCode", 400);
  await made.kill();
  expect(await Sandbox.deleteSnapshot(snapshotId)).toBe(true);
  expect(await Sandbox.deleteSnapshot(snapshotId)).toBe(false);
  expect(await refusal(Sandbox.create(snapshotId))).toHaveProperty("statusCode", 404);
});

describe("refused snapshots", () => {
  test.each(["a/b/c", "no-such-team/snap", "snap:a:b", "sn ap", "snap:"])("the name '%s' is refused", async (name) => {
    const source = await ownSandbox();
    expect(await refusal(source.createSnapshot({ name }))).toHaveProperty("statusCode", 400);
  });

  test("a paused or killed sandbox gets no snapshot, and of two requests at the same time one may be refused", async () => {
    const source = await ownSandbox();
    const path = `/sandboxes/${source.sandboxId}/snapshots`;
    const both = await Promise.all([1, 2].map(() => api(platform, "POST", path, { body: {} })));
    for (const reply of both.filter(({ status }) => status === 201)) {
      kept({ snapshotId: (reply.json as { snapshotID: string }).snapshotID, names: [] });
    }
    expect(both.map(({ status }) => status)).toContain(201);
    for (const { status } of both) expect([201, 409]).toContain(status);
    await source.pause();
    expect((await api(platform, "POST", path, { body: {} })).status).toBe(409);
    await source.kill();
    expect((await api(platform, "POST", path, { body: {} })).status).toBe(404);
  });
});
