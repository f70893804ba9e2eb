/** Counts the stored bytes that this node exchanges with the blob store and with other nodes, since its start. For the metrics. */

import type { BlobStore } from "./stores/store.ts";

const WAYS = ["to_store", "from_store", "to_nodes", "from_nodes"] as const;
type Way = (typeof WAYS)[number];

export interface Traffic {
  add(way: Way, bytes: number): void;
  read(): Readonly<Record<Way, number>>;
}

export function createTraffic(): Traffic {
  const bytes: Record<Way, number> = { to_store: 0, from_store: 0, to_nodes: 0, from_nodes: 0 };
  return {
    add(way, more) {
      bytes[way] += more;
    },
    read: () => ({ ...bytes }),
  };
}

export function countedStore(store: BlobStore, traffic: Traffic): BlobStore {
  return {
    name: store.name,
    async put(key, bytes, signal, replace) {
      const outcome = await store.put(key, bytes, signal, replace);
      if (outcome === "stored") traffic.add("to_store", bytes.length);
      return outcome;
    },
    async get(key, signal, range) {
      const bytes = await store.get(key, signal, range);
      traffic.add("from_store", bytes.length);
      return bytes;
    },
    size: (key, signal) => store.size(key, signal),
    delete: (key, signal) => store.delete(key, signal),
    list: (prefix, after, signal) => store.list(prefix, after, signal),
    tidy: (before, signal) => store.tidy(before, signal),
  };
}
