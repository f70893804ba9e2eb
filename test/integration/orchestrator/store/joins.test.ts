/** Joins of machines at two orchestrators on one PostgreSQL database. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { newUuid } from "../../../../shared/ids.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const ROUNDS = 12;
const AT_ONCE = 6;
const HASH = "hash-of-the-secret";

let shared: SharedDatabase;
let stores: readonly [Store, Store];
beforeAll(async () => {
  shared = await openShared();
  const [one, two] = shared.opened;
  stores = [createStore(one.database, Date.now, testSeal), createStore(two.database, Date.now, testSeal)];
}, 120_000);
afterAll(() => shared.close(), 60_000);

async function newToken(kind: "node" | "edge" = "node"): Promise<string> {
  const id = newUuid();
  await stores[0].machines.addToken({ id, hash: HASH, expiresAt: Date.now() + 600_000, kind });
  return id;
}

const trustOf = async (id: string) => (await stores[0].authorities.machines()).find((machine) => machine.id === id);

test("of machines that join under one name at the same time one gets it, and the others are told that it is taken", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const nodeId = `same${round}`;
    const tokens = await Promise.all(Array.from({ length: AT_ONCE }, () => newToken()));
    const joined = await Promise.allSettled(
      tokens.map((tokenId, index) =>
        stores[index % 2 === 0 ? 0 : 1].machines.join({
          tokenId,
          hash: HASH,
          nodeId,
          keyDigest: `key ${index}`,
          isProved: false,
        }),
      ),
    );
    const winners = joined.flatMap(({ status }, index) => (status === "fulfilled" ? [`key ${index}`] : []));
    expect(winners).toEqual([await stores[0].machines.keyOf(nodeId)]);
    for (const each of joined)
      if (each.status === "rejected") expect(String(each.reason)).toContain("is on this platform with another key");
  }
});

test("of edges that join under one name at the same time one gets it, and the others are told that it is taken", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const edgeId = `edge${round}`;
    const keyOf = (index: number) => `key ${index} of ${edgeId}`;
    const tokens = await Promise.all(Array.from({ length: AT_ONCE }, () => newToken("edge")));
    const joined = await Promise.allSettled(
      tokens.map((tokenId, index) =>
        stores[index % 2 === 0 ? 0 : 1].machines.joinEdge({ tokenId, hash: HASH, edgeId, keyDigest: keyOf(index) }),
      ),
    );
    const winners = joined.flatMap(({ status }, index) => (status === "fulfilled" ? [keyOf(index)] : []));
    expect(winners).toHaveLength(1);
    expect(await stores[0].machines.edgeOf(winners[0] ?? "")).toBe(edgeId);
    for (const each of joined)
      if (each.status === "rejected") expect(String(each.reason)).toContain("is on this platform with another key");
  }
});

test("a machine that joins as two edges at the same time is one of them, and its other join can be repeated", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const keyDigest = `key of twins ${round}`;
    const names = ["one", "two"].map((name) => `${name}-${round}`);
    const tokens = await Promise.all(names.map(() => newToken("edge")));
    const joins = names.map((edgeId, index) => () => {
      const { machines } = stores[index === 0 ? 0 : 1];
      return machines.joinEdge({ tokenId: tokens[index] ?? "", hash: HASH, edgeId, keyDigest });
    });
    const joined = await Promise.allSettled(joins.map((join) => join()));
    for (const [index, each] of joined.entries()) {
      if (each.status === "fulfilled") continue;
      expect(each.reason).toMatchObject({ code: "conflict" });
      expect(String(each.reason)).toContain("is under way: join as");
      await joins[index]?.();
    }
    expect(names).toContain(await stores[0].machines.edgeOf(keyDigest));
  }
});

test("a join token that is revoked while a machine joins is used or revoked, never both", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const tokenId = await newToken();
    const claim = { tokenId, hash: HASH, nodeId: `revoked${round}`, keyDigest: "key", isProved: false };
    const [join] = await Promise.allSettled([stores[0].machines.join(claim), stores[1].machines.revokeToken(tokenId)]);
    const token = (await stores[0].machines.listTokens()).find(({ id }) => id === tokenId);
    const used = { revoked: false, used: true };
    expect({ revoked: token?.revokedAt !== undefined, used: token?.usedAt !== undefined }).toEqual(
      join?.status === "fulfilled" ? used : { revoked: true, used: false },
    );
  }
});

test("the token that a node has joined with is kept for as long as the node, and others for thirty days", async () => {
  const { machines } = stores[0];
  const [used, other] = [await newToken(), await newToken()];
  await machines.join({ tokenId: used, hash: HASH, nodeId: "kept", keyDigest: "key", isProved: false });
  const old = Date.now() - 31 * 86_400_000;
  await shared.database.query(`update join_tokens set expires_at = ${old} where id in ('${used}', '${other}')`);
  await newToken();
  const left = async () =>
    (await machines.listTokens()).map(({ id }) => id).filter((id) => id === used || id === other);
  expect(await left()).toEqual([used]);
  await machines.removeMember("kept");
  await newToken();
  expect(await left()).toEqual([]);
});

test("a machine that joins again has to say anew which authorities it trusts", async () => {
  const { machines, authorities } = stores[0];
  const said = { trusted: ["former", "next"], issuer: "next" };
  const node = { tokenId: await newToken(), hash: HASH, nodeId: "again", keyDigest: "key", isProved: true };
  const edge = { tokenId: await newToken("edge"), hash: HASH, edgeId: "edge-again", keyDigest: "edge key" };
  const unsaid = { trusted: [], issuer: undefined, askedAt: undefined };
  await machines.join(node);
  await machines.joinEdge(edge);
  // With the same key, as one that has lost its certificate, and with another one, which it has proved to be its own.
  for (const keyDigest of ["key", "another key"]) {
    await authorities.say("node", "again", said);
    expect(await trustOf("again")).toMatchObject(said);
    await machines.join({ ...node, keyDigest });
    expect(await trustOf("again")).toMatchObject(unsaid);
  }
  await authorities.say("edge", "edge-again", said);
  expect(await trustOf("edge-again")).toMatchObject(said);
  await machines.joinEdge(edge);
  expect(await trustOf("edge-again")).toMatchObject(unsaid);
});
