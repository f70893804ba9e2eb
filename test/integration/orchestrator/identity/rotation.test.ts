/** Signing keys change while tokens are issued and verified, also when the orchestrator dies at any statement of the change. */

import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import type { KyselyPlugin } from "kysely";
import { expect, test } from "vitest";
import { createSigningKeys } from "../../../../orchestrator/identity/keys.ts";
import { identityStore } from "../../../../orchestrator/store/identity/identity.ts";
import type { Database } from "../../../../orchestrator/store/tables.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { testSeal } from "../../../support/store/test-seal.ts";
import { AUDIENCE, type Issuer, MINUTE, startIssuer } from "./issuer.ts";

const log = createLog({ component: "test", level: "silent" });

const AHEAD = { config: { identityPublishAheadMinutes: 60 } };

/** Verifies by a key set that the verifier read earlier. */
async function verifies(issuer: Issuer, token: string, keys: object): Promise<void> {
  const options = { audience: AUDIENCE, issuer: issuer.url, currentDate: new Date(issuer.clock.at) };
  await jwtVerify(token, createLocalJWKSet(keys as JSONWebKeySet), options);
}

const kidOf = (token: string) => decodeProtectedHeader(token).kid;
const states = async (issuer: Issuer) => (await issuer.keys()).map(({ state }) => state);

test("a rotation publishes the new key before it signs, and the old one until its last token has expired", async () => {
  const issuer = await startIssuer(AHEAD);
  const first = await issuer.token();
  const [, next] = await issuer.rotate();
  expect(await states(issuer)).toEqual(["signing", "next"]);
  const early = await issuer.jwks();
  expect(early.keys.map(({ kid }) => kid)).toEqual([kidOf(first), next?.kid]);
  expect(kidOf(await issuer.token())).toBe(kidOf(first));
  // Repeated, as a client does that got no answer.
  expect((await issuer.rotate()).map(({ kid }) => kid)).toEqual([kidOf(first), next?.kid]);

  issuer.clock.at += 60 * MINUTE - 1;
  const last = await issuer.token();
  expect(kidOf(last)).toBe(kidOf(first));
  issuer.clock.at += 1;
  const token = await issuer.token();
  expect(kidOf(token)).toBe(next?.kid);
  // A verifier that read the keys an hour ago knows the new key, and one that reads them now knows the old one.
  await verifies(issuer, token, early);
  await verifies(issuer, last, await issuer.jwks());

  await issuer.round();
  const { private_key: erased } = await issuer.db
    .selectFrom("identity_keys")
    .select("private_key")
    .where("kid", "=", kidOf(first) ?? "")
    .executeTakeFirstOrThrow();
  expect(erased).toBeNull();
  issuer.clock.at += 10 * MINUTE - 1000;
  await issuer.round();
  await verifies(issuer, last, await issuer.jwks());
  issuer.clock.at += 5 * MINUTE + 1000;
  await issuer.round();
  expect((await issuer.jwks()).keys.map(({ kid }) => kid)).toEqual([next?.kid]);
});

test("rotations in the middle of traffic fail no verifier whose keys are as old as they may be", async () => {
  const issuer = await startIssuer(AHEAD);
  const used = new Set<string | undefined>();
  for (let step = 0; step < 24; step++) {
    const old = await issuer.jwks();
    const [token] = await Promise.all([issuer.token(), step % 10 === 3 ? issuer.rotate() : issuer.round()]);
    await verifies(issuer, token, old);
    issuer.clock.at += 5 * MINUTE;
    const late = await issuer.token();
    await verifies(issuer, late, old);
    await verifies(issuer, late, await issuer.jwks());
    used.add(kidOf(late));
    issuer.clock.at += 5 * MINUTE;
  }
  expect(used.size).toBe(3);
});

test("of rotations and starts at the same time one makes a key", async () => {
  const issuer = await startIssuer(AHEAD);
  const again = () => startIssuer({ ...AHEAD, database: issuer.db });
  await Promise.all([...Array.from({ length: 8 }, () => issuer.rotate()), again(), again()]);
  expect(await states(issuer)).toEqual(["signing", "next"]);
});

test("another algorithm in the settings takes over as in a rotation", async () => {
  const issuer = await startIssuer(AHEAD);
  const after = await startIssuer({ config: { ...AHEAD.config, identityAlgorithm: "EdDSA" }, database: issuer.db });
  expect((await after.keys()).map(({ algorithm, state }) => [algorithm, state])).toEqual([
    ["ES256", "signing"],
    ["EdDSA", "next"],
  ]);
  after.clock.at += 61 * MINUTE;
  const token = await after.token();
  expect(decodeProtectedHeader(token).alg).toBe("EdDSA");
  await verifies(after, token, await after.jwks());
});

test("a revoked key verifies nothing any more, and its successor signs at once", async () => {
  const issuer = await startIssuer(AHEAD);
  const stolen = await issuer.token();
  const [, next] = await issuer.rotate();
  const kid = kidOf(stolen);
  expect((await issuer.rotate(kid)).map((key) => [key.kid, key.state])).toEqual([[next?.kid, "signing"]]);
  await expect(verifies(issuer, stolen, await issuer.jwks())).rejects.toThrow();
  await verifies(issuer, await issuer.token(), await issuer.jwks());
  expect(await issuer.rotate(kid)).toHaveLength(1);
  // The only key.
  const [only] = await issuer.rotate(next?.kid);
  expect([only?.kid === next?.kid, only?.state]).toEqual([false, "signing"]);
  await verifies(issuer, await issuer.token(), await issuer.jwks());
});

test("the private half of a key is in no log and in no column in clear", async () => {
  let logged = "";
  const issuer = await startIssuer({ ...AHEAD, onLog: (line) => (logged += line) });
  const token = await issuer.token();
  await issuer.rotate();
  const rows = await issuer.db.selectFrom("identity_keys").selectAll().execute();
  expect(rows.map(({ private_key: sealed }) => sealed?.slice(0, 3))).toEqual(["v2:", "v2:"]);
  expect(JSON.stringify(rows)).not.toContain('"d"');
  expect(logged).toContain(kidOf(token));
  expect(logged).not.toMatch(/"d":|\\"d\\"|v[12]:/);
  expect(logged).not.toContain(token);
});

/** The database of a process that dies before its statement number `limit`: nothing after it is carried out. */
function dyingAt(db: Database, limit: number): { readonly database: Database; readonly died: () => boolean } {
  let statements = 0;
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      if (statements++ >= limit) throw new Error("killed");
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  };
  return { database: db.withPlugin(plugin), died: () => statements > limit };
}

/** The keys of a process whose clock stands at `at`. */
function keysOn(db: Database, at: number, algorithm: "ES256" | "EdDSA" = "ES256") {
  const now = () => at;
  const times = { tokenMs: 10 * MINUTE, aheadMs: 60 * MINUTE, rotateMs: 0 };
  return createSigningKeys({ ...times, store: identityStore(db, now), sealing: testSeal, now, log, algorithm });
}

type Keys = ReturnType<typeof keysOn>;

async function signedBy(
  keys: Keys,
  at: number,
): Promise<{ readonly token: string; readonly published: JSONWebKeySet }> {
  const token = await keys.sign({ aud: AUDIENCE }, at);
  return {
    token,
    published: { keys: (await keys.list()).map(({ kid, publicKey }) => ({ ...publicKey, kid })) },
  };
}

test.each<[string, (keys: Keys, kids: readonly string[]) => Promise<unknown>]>([
  ["a first start", (keys) => keys.start()],
  ["a rotation", (keys) => keys.rotate()],
  ["a revocation of the signing key", (keys, [, signing = ""]) => keys.revoke(signing)],
  ["a round that removes keys", (keys) => keys.round()],
])("the orchestrator dies at any statement of %s: old or new keys are in force as a whole", async (name, change) => {
  const ends = new Set<string>();
  for (let limit = 0, died = true; died; limit++) {
    const opened = await openTestDatabase();
    const { database } = opened;
    const [begin, late] = [1000 * MINUTE, 1076 * MINUTE];
    if (name !== "a first start") {
      await keysOn(database, begin).start();
      await keysOn(database, begin).rotate();
    }
    const kids = (await keysOn(database, begin).list()).map(({ kid }) => kid);
    const dying = dyingAt(database, limit);
    await change(keysOn(dying.database, late), kids).catch((error: unknown) => {
      expect(String(error)).toContain("killed");
    });
    died = dying.died();

    const states = (await keysOn(database, late).list()).map(({ kid, state }) => `${kids.indexOf(kid)} ${state}`);
    ends.add(states.join(", "));
    const after = keysOn(database, late);
    await after.start();
    const { token, published } = await signedBy(after, late);
    await jwtVerify(token, createLocalJWKSet(published), { audience: AUDIENCE });
    expect((await after.list()).filter(({ state }) => state === "signing")).toHaveLength(1);
    await opened.close();
    expect(limit).toBeLessThan(20);
  }
  // What was there before, and the whole change; nothing between.
  expect([...ends]).toHaveLength(2);
});
