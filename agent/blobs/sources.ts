/**
 * Reads blobs from the first source that has them whole: this node, other nodes, the store. What a source gives counts only once its
 * content is verified, so a source needs no trust.
 */

import { BlobError, isFault } from "./content/blob-error.ts";
import type { BlobCodec } from "./content/codec.ts";
import { keyOf, parseRef } from "./content/refs.ts";
import type { BlobStore } from "./stores/store.ts";

export interface BlobSource {
  /** For messages. */
  readonly name: string;
  /** The stored bytes of a blob; undefined: this source does not have it. @throws {BlobError} */
  get(ref: string, signal: AbortSignal): Promise<Uint8Array | undefined>;
}

interface ServedBlobs {
  readonly blobs: number;
  readonly bytes: number;
}

export interface BlobReader {
  /** The verified content. @throws {BlobError} the worst of what the sources answered: damaged, unreachable, …, missing */
  read(ref: string, signal: AbortSignal): Promise<Buffer>;
  /** What each source has given, by its name. */
  served(): ReadonlyMap<string, ServedBlobs>;
  /** What was wrong with blobs that another source then gave, at most a hundred. */
  complaints(): readonly BlobError[];
}

const MOST_COMPLAINTS = 100;
/** A source that did not answer is asked last for this long, so that not every blob waits for it. */
const AWAY_MS = 30_000;
/** The first of these that a source answered is what the caller is told. */
const WORST: readonly BlobError["fault"][] = ["unreadable", "damaged", "denied", "unreachable"];

interface ReaderDeps {
  /** In the order in which they are asked. */
  readonly sources: readonly BlobSource[];
  readonly codec: BlobCodec;
  readonly now: () => number;
}

export function createReader({ sources, codec, now }: ReaderDeps): BlobReader {
  const served = new Map<string, ServedBlobs>();
  const complaints: BlobError[] = [];
  const awayUntil = new Map<BlobSource, number>();

  const isAway = (source: BlobSource) => (awayUntil.get(source) ?? 0) > now();
  const inOrder = () => [...sources.filter((each) => !isAway(each)), ...sources.filter(isAway)];

  const ask = async (source: BlobSource, ref: string, signal: AbortSignal): Promise<Buffer | BlobError | undefined> => {
    try {
      const stored = await source.get(ref, signal);
      if (stored === undefined) return undefined;
      const content = await codec.decode(parseRef(ref).id, stored);
      const before = served.get(source.name) ?? { blobs: 0, bytes: 0 };
      served.set(source.name, { blobs: before.blobs + 1, bytes: before.bytes + content.length });
      return content;
    } catch (error) {
      signal.throwIfAborted();
      const fault = error instanceof BlobError ? error.fault : "unreachable";
      if (fault === "unreachable") awayUntil.set(source, now() + AWAY_MS);
      const message = error instanceof Error ? error.message : String(error);
      const complaint = new BlobError(fault, `${source.name}: ${message}`, { cause: error });
      if (complaints.length < MOST_COMPLAINTS) complaints.push(complaint);
      return complaint;
    }
  };

  return {
    async read(ref, signal) {
      const failed: BlobError[] = [];
      for (const source of inOrder()) {
        const answer = await ask(source, ref, signal);
        if (answer instanceof BlobError) failed.push(answer);
        else if (answer !== undefined) return answer;
      }
      const worst = WORST.flatMap((fault) => failed.filter((each) => isFault(each, fault)))[0] ?? failed[0];
      if (worst !== undefined) throw worst;
      const asked = sources.map(({ name }) => name).join(", ");
      throw new BlobError("missing", `blob ${ref} is in none of ${sources.length} sources (${asked})`);
    },
    served: () => served,
    complaints: () => complaints,
  };
}

export function storeSource(store: BlobStore): BlobSource {
  return {
    name: store.name,
    async get(ref, signal) {
      try {
        return await store.get(keyOf(ref), signal);
      } catch (error) {
        if (isFault(error, "missing")) return undefined;
        throw error;
      }
    },
  };
}

/** Another node. @param fetchBlob undefined: the node does not have the blob */
export function peerSource(
  nodeId: string,
  fetchBlob: (ref: string, signal: AbortSignal) => Promise<Uint8Array | undefined>,
): BlobSource {
  return { name: `the node ${nodeId}`, get: fetchBlob };
}
