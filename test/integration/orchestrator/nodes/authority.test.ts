/** The platform's authority is replaced while a node and an edge that have joined are used all the time. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { filesOf, openPeering } from "../../../../agent/joining/open-peering.ts";
import { createOrchestrators } from "../../../../agent/joining/orchestrators.ts";
import { startRenewal } from "../../../../agent/joining/renewal.ts";
import { openMembership, startEdgeRenewal } from "../../../../orchestrator/edge/program/joining.ts";
import { edgeFiles } from "../../../../orchestrator/edge/program/membership.ts";
import type { AuthorityRotation } from "../../../../shared/api/keys/authority-rotation.ts";
import type { Rotation } from "../../../../shared/api/keys/rotation.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import { makePlatformAuthority, openAuthority } from "../../../../shared/tls/authority.ts";
import { digestsIn } from "../../../../shared/tls/bundle.ts";
import { saidBy } from "../../../../shared/tls/follow.ts";
import { nodeName } from "../../../../shared/tls/names.ts";
import { requestFor } from "../../../../shared/tls/request.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import {
  admin,
  type JoinedMachine,
  joinCluster,
  keptBy,
  newJoinToken,
  newMachine,
  nodesUrlOf,
  startMember,
} from "../../../support/cluster/members.ts";
import { listening } from "../../../support/peers/listening.ts";

const log = createLog({ component: "test", level: "silent" });
const PATH = "/admin/rotation/authority";
/** All of it takes 12 rounds twice, and what the machines need. */
const LONG = { timeout: 180_000 };

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({ agents: 0, config: { nodesPort: 0, reconcileEveryMs: 50 } });
});
afterEach(() => cluster.stop());

const begin = () => cluster.ask("POST", PATH, admin);
const state = async () => (await cluster.ask("GET", PATH, admin)).body as AuthorityRotation;
const single = () => expect.poll(async () => (await state()).state, LONG).toBe("single");

/** The agent's own renewal, in short rounds. */
function following({ config, peering }: JoinedMachine): Teardown {
  const teardown = new Teardown(log);
  onTestFinished(() => teardown.run());
  const orchestrators = createOrchestrators(config.orchestratorUrl, log);
  const deps = {
    peering,
    orchestrators,
    nodeId: config.nodeId,
    files: filesOf(config),
    now: Date.now,
    log,
    everyMs: 30,
  };
  startRenewal(deps, teardown);
  return teardown;
}

/** Resolves when the node has said which authorities it trusts. */
async function said(...nodeIds: readonly string[]): Promise<void> {
  await expect
    .poll(async () => {
      const rows = await cluster.database.query("select node_id from members where asked_at is not null");
      return rows.map((row) => row["node_id"]);
    })
    .toEqual(expect.arrayContaining([...nodeIds]) as unknown[]);
}

/** A node whose orchestrator reaches it by new connections all the time. */
async function usedNode() {
  const machine = await joinCluster(cluster);
  const agent = await startMember(cluster, machine);
  following(machine);
  await said(machine.config.nodeId);
  const backend = createServer((_request, response) => response.end("from inside"));
  const port = await listening(backend);
  onTestFinished(() => void backend.close());
  const { sandboxID } = (await cluster.ask("POST", "/sandboxes", { body: { templateID: "base" } })).body as {
    sandboxID: string;
  };
  const headers = { "e2b-sandbox-id": sandboxID, "e2b-sandbox-port": String(port), connection: "close" };
  const failed: string[] = [];
  const over = new AbortController();
  const using = (async () => {
    while (!over.signal.aborted) {
      const report = await agent.beat().then(
        () => "",
        (error: unknown) => `report: ${String(error)}`,
      );
      const answer = await fetch(cluster.edgeUrl, { headers });
      const text = await answer.text();
      const changed = await cluster.ask("POST", `/sandboxes/${sandboxID}/timeout`, { body: { timeout: 600 } });
      failed.push(
        ...[report, text === "from inside" ? "" : text, changed.status === 204 ? "" : changed.text].filter(Boolean),
      );
      await delay(10);
    }
  })();
  const end = async () => {
    over.abort();
    await using;
    return failed;
  };
  return { machine, end };
}

test("the authority is replaced, and a node is reached all the time", LONG, async () => {
  const { machine, end } = await usedNode();
  const before = await state();
  expect(before).toMatchObject({ state: "single", former: null });
  const begun = await begin();
  expect(begun.status, begun.text).toBe(202);
  expect(begun.body).toMatchObject({ state: "trusting", former: before.digest });
  const { next } = begun.body as AuthorityRotation;
  await expect.poll(async () => (await state()).state, LONG).toBe("signing");
  await single();
  expect((await state()).digest).toBe(next);
  await expect.poll(() => digestsIn(keptBy(machine.config).credentials.authority)).toEqual([next]);
  expect(saidBy(keptBy(machine.config).credentials).issuer).toBe(next);
  expect(await end()).toEqual([]);
  const { authority } = (await cluster.ask("GET", "/admin/rotation", admin)).body as Rotation;
  expect(authority).toMatchObject({ state: "single", digest: next });
  const { events } = (await cluster.ask("GET", `/nodes/${machine.config.nodeId}`, admin)).body as {
    events: { kind: string }[];
  };
  const kinds = events.map(({ kind }) => kind);
  expect(kinds).toEqual(expect.arrayContaining(["joined", "ready", "certificate_renewed"]));
});

test(
  "it waits for a node that is away, goes on after a restart of the orchestrator, and a machine joins by the new one",
  LONG,
  async () => {
    const away = await joinCluster(cluster);
    const other = await joinCluster(cluster);
    const firstRounds = following(away);
    following(other);
    await said(away.config.nodeId, other.config.nodeId);
    await firstRounds.run();
    expect((await begin()).status).toBe(202);
    const waits = async () => (await state()).waitsFor.map(({ id, reason }) => [id, reason]);
    await expect.poll(waits).toEqual([[away.config.nodeId, "does not trust the new authority yet"]]);
    // A repeated call changes nothing.
    const { next } = await state();
    expect((await begin()).body).toMatchObject({ state: "trusting", next });
    const early = await cluster.ask("POST", "/admin/join-tokens", admin);
    expect(early.text).toContain("is being replaced");
    await cluster.restart({ nodesPort: Number(new URL(nodesUrlOf(cluster)).port) });
    following(away);
    await expect.poll(async () => (await state()).state, LONG).not.toBe("trusting");
    await single();
    expect((await state()).digest).toBe(next);
    const joined = await joinCluster(cluster);
    expect(digestsIn(keptBy(joined.config).credentials.authority)).toEqual([next]);
  },
);

test("an edge that has joined follows, with a certificate of the new authority", LONG, async () => {
  const edgeStateDir = await mkdtemp(join(tmpdir(), "svc-edge-"));
  onTestFinished(() => rm(edgeStateDir, { recursive: true, force: true }));
  const made = await cluster.ask("POST", "/admin/join-tokens", { ...admin, body: { kind: "edge" } });
  const { token: joinToken } = made.body as { token: string };
  const config = { edgeStateDir, edgeId: "edge-1", orchestratorUrl: nodesUrlOf(cluster), joinToken };
  const deps = { now: Date.now, log };
  const credentials = await openMembership(config, deps);
  if (credentials === undefined) throw new Error("the edge has not joined");
  expect((await begin()).text).toContain("edge 'edge-1' cannot follow");
  const teardown = new Teardown(log);
  onTestFinished(() => teardown.run());
  startEdgeRenewal(credentials, config, { ...deps, teardown, everyMs: 30 });
  await expect.poll(async () => (await begin()).status).toBe(202);
  const { next } = await state();
  await single();
  await expect.poll(() => digestsIn(credentials.current.authority)).toEqual([next]);
  expect(edgeFiles(edgeStateDir).read()).toEqual(credentials.current);
});

test("a node whose certificate has ended since comes back with the token that it had joined with", LONG, async () => {
  const config = await newMachine(cluster, { joinToken: await newJoinToken(cluster) });
  const deps = { now: Date.now, log };
  const machine = { config, peering: await openPeering(config, deps) };
  const rounds = following(machine);
  await said(config.nodeId);
  expect((await begin()).status).toBe(202);
  await single();
  const { digest } = await state();
  await expect.poll(() => digestsIn(keptBy(config).credentials.authority)).toEqual([digest]);
  await rounds.run();
  const { credentials, ...tokens } = keptBy(config);
  const long = Date.now() - 100 * 3_600_000;
  const other = await openAuthority(await makePlatformAuthority(long));
  const ended = await other.sign(await requestFor(credentials.key), nodeName(config.nodeId), long);
  const authority = `${other.certificate}${credentials.authority}`;
  filesOf(config).write({ ...tokens, credentials: { authority, certificate: ended, key: credentials.key } });
  await openPeering(config, deps);
  expect(saidBy(keptBy(config).credentials)).toEqual({ trusted: [digest], issuer: digest });
});

test("it is refused while a join token would be of no use, and where there is no port for nodes", async () => {
  const token = await newJoinToken(cluster);
  const refused = await begin();
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining(token.split(".")[2] ?? "") as string]);
  expect(await state()).toMatchObject({ state: "single" });
  const plain = await startCluster();
  onTestFinished(() => plain.stop());
  const answer = await plain.ask("POST", PATH, admin);
  expect(answer.text).toContain("no port for other machines");
  expect(((await plain.ask("GET", "/admin/rotation", admin)).body as Rotation).authority).toBeNull();
});
