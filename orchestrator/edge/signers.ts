/**
 * Finds the sandbox of a request that names none: the one whose token signed a file URL, or whose token the request carries.
 * A signature takes one hash per sandbox, so results are cached; a token takes one look-up. Each address may send only a
 * limited number of wrong signatures and tokens.
 */

import { LRUCache } from "lru-cache";
import { atMost } from "../../shared/program/at-most.ts";
import type { Refusal } from "./answers/answers.ts";
import type { EdgeRoute, PausedSandbox } from "./sandbox-lookup.ts";
import { findSigner, type Signed } from "./signed-url.ts";
import { TokenIndex } from "./token-index.ts";

/** Cached signatures; about 150 bytes each. */
const REMEMBERED = 10_000;
/** Addresses whose wrong signatures are counted. */
const ADDRESSES = 20_000;
/** Wrong signatures an address may send at once, and how many per second are added again. */
const WRONG_AT_ONCE = 60;
const WRONG_PER_SECOND = 1;

type Found<Route> =
  | { readonly is: "running"; readonly route: Route }
  | { readonly is: "paused"; readonly sandboxId: string }
  | { readonly is: "wrong" }
  /** The address has sent too many wrong signatures, and this one has not been valid before. */
  | { readonly is: "later"; readonly retryAfterSeconds: number };

export type FoundSandbox = Promise<Found<EdgeRoute>>;

/** The answers to a visitor whose signature or token is of no sandbox. */
export interface Wrong {
  readonly refusal: Refusal;
  readonly tooMany: "too_many_wrong_signatures" | "too_many_wrong_tokens";
}

export const WRONG_SIGNATURE: Wrong = { refusal: { is: "invalid_signature" }, tooMany: "too_many_wrong_signatures" };
export const WRONG_TOKEN: Wrong = { refusal: { is: "unknown_token" }, tooMany: "too_many_wrong_tokens" };

export interface SignersDeps<Route> {
  readonly routes: {
    lookup(sandboxId: string): Route | undefined;
    byToken(envdAccessToken: string): Route | undefined;
    running(): Iterable<Route>;
  };
  readonly pausedSandboxes: () => Promise<readonly PausedSandbox[]>;
  /** Milliseconds. */
  readonly now: () => number;
}

interface Signers<Route> {
  /** @param address of the client, as limits count it (`clientOf`) */
  readonly find: (signed: Signed, address: string) => Promise<Found<Route>>;
  /** @param token the value of `X-Access-Token` */
  readonly findHolder: (token: string, address: string) => Promise<Found<Route>>;
}

const WRONG = { is: "wrong" } as const;

export function createSigners<Route extends PausedSandbox>(deps: SignersDeps<Route>): Signers<Route> {
  const { routes, pausedSandboxes, now } = deps;
  /** By the list that it is made of, which is read again once a second at most. */
  const pausedByToken = new WeakMap<readonly PausedSandbox[], TokenIndex<PausedSandbox>>();
  /** Sandbox by signature. */
  const signers = new LRUCache<string, string>(atMost(REMEMBERED));
  const { wait, wrong } = wrongOnes(now);

  async function recall(signed: Signed, sandboxId: string): Promise<Found<Route>> {
    const route = routes.lookup(sandboxId);
    if (route !== undefined) return findSigner(signed, [route]) === undefined ? WRONG : { is: "running", route };
    const candidates = (await pausedSandboxes()).filter((pausedSandbox) => pausedSandbox.sandboxId === sandboxId);
    return findSigner(signed, candidates) === undefined ? WRONG : { is: "paused", sandboxId };
  }

  async function search(signed: Signed, address: string): Promise<Found<Route>> {
    const route = findSigner(signed, routes.running());
    if (route !== undefined) {
      signers.set(signed.signature, route.sandboxId);
      return { is: "running", route };
    }
    const pausedSandbox = findSigner(signed, await pausedSandboxes().catch((reason: unknown) => fail(reason, address)));
    if (pausedSandbox === undefined) {
      wrong(address);
      return WRONG;
    }
    signers.set(signed.signature, pausedSandbox.sandboxId);
    return { is: "paused", sandboxId: pausedSandbox.sandboxId };
  }

  function fail(reason: unknown, address: string): never {
    wrong(address);
    throw reason;
  }

  return {
    async find(signed, address) {
      const known = signers.get(signed.signature);
      // Only the known sandbox can have signed it, unless path or user differ, which one hash checks.
      if (known !== undefined) return recall(signed, known);
      const retryAfterSeconds = wait(address);
      return retryAfterSeconds > 0 ? { is: "later", retryAfterSeconds } : search(signed, address);
    },
    async findHolder(token, address) {
      const route = routes.byToken(token);
      if (route !== undefined) return { is: "running", route };
      const retryAfterSeconds = wait(address);
      if (retryAfterSeconds > 0) return { is: "later", retryAfterSeconds };
      const list = await pausedSandboxes().catch((reason: unknown) => fail(reason, address));
      const index = pausedByToken.get(list) ?? TokenIndex.of(list);
      pausedByToken.set(list, index);
      const found = index.find(token);
      if (found !== undefined) return { is: "paused", sandboxId: found.sandboxId };
      wrong(address);
      return WRONG;
    },
  };
}

/** Counts recent wrong signatures by address. Parallel requests may exceed the limit, and then wait longer. */
function wrongOnes(now: () => number) {
  const counted = new LRUCache<string, { readonly count: number; readonly at: number }>(atMost(ADDRESSES));
  const countOf = (address: string) => {
    const { count, at } = counted.get(address) ?? { count: 0, at: 0 };
    return Math.max(0, count - (Math.max(0, now() - at) / 1000) * WRONG_PER_SECOND);
  };
  return {
    /** Seconds until the address may send another unknown signature; 0: now. */
    wait: (address: string) => Math.max(0, Math.ceil((countOf(address) + 1 - WRONG_AT_ONCE) / WRONG_PER_SECOND)),
    wrong: (address: string) => {
      const count = Math.min(2 * WRONG_AT_ONCE, countOf(address) + 1);
      counted.set(address, { count, at: now() });
    },
  };
}
