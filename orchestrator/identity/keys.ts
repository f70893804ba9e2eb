/** The keys that sign workload identity tokens: made, rotated, revoked, published. The private halves are stored sealed. */

import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  SignJWT,
} from "jose";
import { defined } from "../../shared/defined.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import type { Algorithm, IdentityStore, KeyPlan, NewIdentityKey } from "../store/identity/identity.ts";
import type { IdentityKey } from "../store/identity/record.ts";
import { identityKeyContext as context } from "../store/sealed/contexts.ts";
import {
  planRevocation,
  planRotation,
  planRound,
  planStart,
  type ScheduledKey,
  schedule,
  signerOf,
  type Times,
} from "./schedule.ts";

export interface SigningKeysDeps extends Times {
  readonly store: IdentityStore;
  readonly sealing: Seal;
  readonly now: () => number;
  readonly log: Log;
  readonly algorithm: Algorithm;
  /** Lifetime of tokens. */
  readonly tokenMs: number;
}

export interface SigningKeys {
  /** Makes the first key, or one of the algorithm that was set. */
  start(): Promise<void>;
  /** Publishes a new key, which signs after `aheadMs`. Repeating it meanwhile changes nothing. */
  rotate(): Promise<readonly ScheduledKey[]>;
  /** Removes a key at once, and lets its successor sign if it was the signing one. An unknown `kid` changes nothing. */
  revoke(kid: string): Promise<readonly ScheduledKey[]>;
  /** Work that is due by time: rotation by age, removal of retired keys. */
  round(): Promise<void>;
  /** All keys, which are also the published ones. */
  list(): Promise<readonly ScheduledKey[]>;
  /** A signed token. `at` is the time of issue, in ms. */
  sign(claims: JWTPayload, at: number): Promise<string>;
}

export function createSigningKeys(deps: SigningKeysDeps): SigningKeys {
  const { store, sealing, now, log, algorithm, tokenMs } = deps;
  /** The key that signed last, so that it is opened once. */
  let opened: { readonly kid: string; readonly key: Awaited<ReturnType<typeof importJWK>> } | undefined;

  async function change(
    what: string,
    decide: (keys: readonly IdentityKey[], at: number) => KeyPlan,
  ): Promise<ScheduledKey[]> {
    const at = now();
    const planned = decide(await store.list(), at);
    const fresh = planned.addAt === undefined ? undefined : await newKey(algorithm, sealing);
    const before = new Set<string>();
    const after = await store.change({ fresh, tokenMs }, (keys) => {
      for (const { kid } of keys) before.add(kid);
      return decide(keys, at);
    });
    const added = after.find(({ kid }) => !before.has(kid));
    const removed = [...before].filter((kid) => !after.some((key) => key.kid === kid));
    if (added !== undefined || removed.length > 0) {
      log.info({ added: added?.kid, signsFrom: added?.signsFrom, removed }, `changed the signing keys: ${what}`);
    }
    return schedule(after, at);
  }

  async function privateKey({ kid, algorithm: used, sealedPrivateKey }: IdentityKey) {
    if (opened?.kid === kid) return opened.key;
    const text = sealing.open(sealedPrivateKey ?? "", context(kid));
    const key = await importJWK(JSON.parse(text) as JWK, used);
    opened = { kid, key };
    return key;
  }

  return {
    async start() {
      await change("start", (keys, at) => planStart(keys, at, deps));
    },
    rotate: () => change("rotation", (keys, at) => planRotation(keys, at, deps)),
    revoke: (kid) => change("revocation", (keys, at) => planRevocation(keys, at, kid)),
    async round() {
      const { addAt, erase = [], remove = [] } = planRound(await store.list(), now(), deps);
      if (addAt === undefined && erase.length === 0 && remove.length === 0) return;
      await change("round", (keys, at) => planRound(keys, at, deps));
    },
    list: async () => schedule(await store.list(), now()),

    async sign(claims, at) {
      const signer = signerOf(await store.list(), at);
      if (signer === undefined) throw new AppError("unavailable", "the platform has no key for identity tokens yet");
      return new SignJWT(claims)
        .setProtectedHeader({ alg: signer.algorithm, kid: signer.kid, typ: "JWT" })
        .sign(await privateKey(signer));
    },
  };
}

async function newKey(algorithm: Algorithm, sealing: Seal): Promise<NewIdentityKey> {
  const pair = await generateKeyPair(algorithm, { extractable: true });
  const { kty, crv, x, y } = await exportJWK(pair.publicKey);
  const publicKey = { kty, crv, x, ...defined({ y }) };
  const kid = await calculateJwkThumbprint(publicKey as JWK);
  const sealedPrivateKey = sealing.close(JSON.stringify(await exportJWK(pair.privateKey)), context(kid));
  return { kid, algorithm, publicKey, sealedPrivateKey };
}

/** Binds the sealed half to its key. */
