/** A store of blobs in memory, whose calls a test counts, and which fails at the call that a test chooses. */

import { BlobError } from "../../../agent/blobs/content/blob-error.ts";
import type { BlobStore } from "../../../agent/blobs/stores/store.ts";

export interface MemoryBlobStore extends BlobStore {
  readonly objects: Map<string, Buffer>;
  /** Calls of each kind. */
  readonly calls: Record<"put" | "get" | "size" | "delete" | "list" | "tidy", number>;
  /** Called before each call; what it throws is what the call throws. */
  before: (call: keyof MemoryBlobStore["calls"], key: string) => Promise<void> | void;
}

export function memoryBlobStore(name = "the store in memory"): MemoryBlobStore {
  const objects = new Map<string, Buffer>();
  const count = async (call: keyof MemoryBlobStore["calls"], key: string, signal: AbortSignal) => {
    signal.throwIfAborted();
    store.calls[call]++;
    await store.before(call, key);
  };
  const store: MemoryBlobStore = {
    name,
    objects,
    calls: { put: 0, get: 0, size: 0, delete: 0, list: 0, tidy: 0 },
    before: () => undefined,
    async put(key, bytes, signal, replace = false) {
      await count("put", key, signal);
      if (!replace && objects.has(key)) return "present";
      objects.set(key, Buffer.from(bytes));
      return "stored";
    },
    async get(key, signal, range) {
      await count("get", key, signal);
      const bytes = objects.get(key);
      if (bytes === undefined) throw new BlobError("missing", `${name} does not have ${key}`);
      return range === undefined ? bytes : bytes.subarray(range.from, range.from + range.length);
    },
    async size(key, signal) {
      await count("size", key, signal);
      return objects.get(key)?.length;
    },
    async delete(key, signal) {
      await count("delete", key, signal);
      objects.delete(key);
    },
    async list(prefix, after, signal) {
      await count("list", prefix, signal);
      const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
      const page = keys.slice(0, 3);
      return {
        found: page.map((key) => ({ key, bytes: objects.get(key)?.length ?? 0 })),
        next: keys.length > page.length ? page.at(-1) : undefined,
      };
    },
    async tidy(_before, signal) {
      await count("tidy", "", signal);
      return 0;
    },
  };
  return store;
}
