/**
 * Whether the blob store can be used: it is there, and this platform's. The agent starts without it. A store that is away, or another
 * platform's, is a finding; it is looked at in rounds, before the first use and after it.
 */

import { within } from "../../shared/program/deadline.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { BlobStoreStore } from "../store/blob-stores.ts";
import { BlobError, type BlobFault } from "./content/blob-error.ts";
import { claimStore } from "./stores/claim.ts";
import type { BlobStore } from "./stores/store.ts";

const EVERY_MS = 30_000;
/** A service that takes requests and does not answer is retried for longer than anybody should wait for the finding. */
const LOOK_LIMIT_MS = 60_000;
/** The orchestrator tells a new node the platform's name in its answer to the first report. */
const NAMELESS_EVERY_MS = 1_000;

export interface ClaimedStore {
  /** Undefined: the operator has set none. */
  readonly name: string | undefined;
  /** The store, if the last look at it found it this platform's. @throws {BlobError} with the reason why it cannot be used now */
  use(): BlobStore;
  findings(): Finding[];
  start(): void;
  stop(): Promise<void>;
}

export interface ClaimedStoreDeps {
  /** Undefined: the operator has set none. */
  readonly store: BlobStore | undefined;
  /** The platform's id; undefined: no orchestrator has named its database to this node yet. */
  readonly owner: () => string | undefined;
  /** Which stores this node has used, and for whom. */
  readonly used: BlobStoreStore;
  /** The answer has changed. */
  readonly onChange: () => void;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
  readonly lookLimitMs?: number;
}

export function createClaimedStore(deps: ClaimedStoreDeps): ClaimedStore {
  const { store, owner, used, onChange, log, everyMs = EVERY_MS } = deps;
  const { lookLimitMs = LOOK_LIMIT_MS } = deps;
  const name = store?.name;
  const waiting = new BlobError("unreachable", `${name ?? "the store"} was not looked at yet`);
  const state: { problem: BlobError | undefined; known: boolean } = { problem: waiting, known: false };
  let rounds: Loop | undefined;
  let soon: NodeJS.Timeout | undefined;

  const note = (problem: BlobError | undefined) => {
    const before = state.known ? state.problem : waiting;
    state.problem = problem;
    state.known = true;
    if (problem?.message === before?.message) return;
    if (problem === undefined) log.info({ store: name }, "the blob store can be used");
    else log.error(toFinding(problem), "the blob store cannot be used");
    onChange();
  };

  const look = async (own: BlobStore, signal: AbortSignal): Promise<BlobError | undefined> => {
    const platform = owner();
    if (platform === undefined) return new BlobError("unreachable", `${own.name} waits for the platform's name`);
    try {
      const claim = { owner: platform, usedBefore: used.has(own.name, platform) };
      await within(lookLimitMs, (limit) => claimStore(own, claim, AbortSignal.any([signal, limit])));
      used.add(own.name, platform);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof BlobError) return error;
      // What waits before it asks again ends with an `AbortError`.
      const late = error instanceof Error && /^(?:Timeout|Abort)Error$/.test(error.name);
      const said = late ? `${own.name} has not answered for ${lookLimitMs / 1_000} s` : String(error);
      return new BlobError("unreachable", said, { cause: error });
    }
  };

  return {
    name,
    use() {
      if (store === undefined) throw new BlobError("unreachable", "this node has no blob store (SVC_BLOB_STORE)");
      if (state.problem !== undefined) throw state.problem;
      return store;
    },
    findings() {
      // An agent that has just started has nothing to say yet.
      if (store === undefined || !state.known || owner() === undefined || state.problem === undefined) return [];
      return [toFinding(state.problem)];
    },
    start() {
      if (store === undefined) return;
      rounds ??= loop({ name: "blob store", everyMs, log }, async (signal) => {
        note(await look(store, signal));
        if (owner() === undefined && !signal.aborted)
          soon = setTimeout(() => rounds?.wake(), NAMELESS_EVERY_MS).unref();
      });
    },
    async stop() {
      clearTimeout(soon);
      await rounds?.stop();
    },
  };
}

const WAYS_OUT: Readonly<Partial<Record<BlobFault, string>>> = {
  denied:
    "check its rights, or the access key, secret and region (SVC_BLOB_STORE_ACCESS_KEY, SVC_BLOB_STORE_SECRET, SVC_BLOB_STORE_REGION)",
  full: "make room in it",
  foreign: "mount the right share, or give each platform a place of its own (SVC_BLOB_STORE)",
};

function toFinding({ fault, message }: BlobError): Finding {
  return {
    id: "blobs.store",
    problem: "templates and snapshots of this node are neither stored beyond it nor fetched from elsewhere",
    evidence: message,
    wayOut: `${WAYS_OUT[fault] ?? "mount it, start it, or correct SVC_BLOB_STORE (of a service SVC_BLOB_STORE_URL too)"}; the node looks at it again every half minute`,
  };
}
