/**
 * The blob store of a fleet, as `scripts/fleet up` has made it: a directory that its nodes share, or with SVC_FLEET_STORE=s3 a bucket of
 * the S3 service that runs beside them.
 */

import { readFile, rename } from "node:fs/promises";
import { directoryStore } from "../../../agent/blobs/stores/directory.ts";
import { s3Store } from "../../../agent/blobs/stores/s3.ts";
import type { BlobStore } from "../../../agent/blobs/stores/store.ts";
import { readAgentConfig, readBlobPlace } from "../../../agent/config.ts";
import { api, asAdmin, type Platform, readEnvFile } from "../platform/platform.ts";
import { until } from "../runner/until.ts";
import { type Fleet, HOME } from "./fleet.ts";

export interface FleetStore {
  readonly kind: "directory" | "s3";
  /** The processes of the S3 service; none of a directory. */
  pids(): Promise<readonly number[]>;
  /**
   * Takes it away: a share that is not mounted, a service that does not run.
   * @returns the function that brings it back
   */
  goAway(): Promise<() => Promise<void>>;
  /** Reads and writes its objects. The blobs of nodes are sealed. */
  use<T>(work: (store: BlobStore) => Promise<T>): Promise<T>;
}

const READY_MS = 60_000;
const SETTINGS = [
  "SVC_BLOB_STORE",
  "SVC_BLOB_STORE_URL",
  "SVC_BLOB_STORE_ACCESS_KEY",
  "SVC_BLOB_STORE_SECRET",
  "SVC_BLOB_KEY",
];

/** The store of the settings that the nodes have. */
export function storeOf({ nodes: [node] }: Fleet): FleetStore {
  if (node === undefined) throw new Error("the fleet has no node");
  const own = readEnvFile(`${node.platform.paths.etc}/config.env`);
  const place = readBlobPlace(readAgentConfig(Object.fromEntries(SETTINGS.map((name) => [name, own.get(name)]))));
  if (place === undefined) throw new Error("the nodes of the fleet have no blob store");
  if (place.is === "directory") {
    const { directory } = place;
    return {
      kind: "directory",
      pids: async () => [],
      async goAway() {
        await rename(directory, `${directory}-away`);
        return () => rename(`${directory}-away`, directory);
      },
      use: (work) => work(directoryStore(directory)),
    };
  }
  const use: FleetStore["use"] = async (work) => {
    const store = s3Store(place.at, place.secrets);
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  return {
    kind: "s3",
    pids: servicePids,
    async goAway() {
      const supervisor = Number((await readFile(`${HOME}/swift/supervisor.pid`, "utf8")).trim());
      const [first = 0] = await servicePids();
      process.kill(supervisor, "SIGSTOP");
      // The others end with it.
      process.kill(first, "SIGKILL");
      return async () => {
        process.kill(supervisor, "SIGCONT");
        const look = () => use((store) => store.list("sha256/", "", AbortSignal.timeout(5_000)));
        const answers = () =>
          look().then(
            () => true,
            () => false,
          );
        await until(answers, { what: "the return of the S3 service", timeoutMs: READY_MS });
      };
    },
    use,
  };
}

/** As the service says them when it is ready: first the process that starts and ends with the others. */
async function servicePids(): Promise<readonly number[]> {
  const said = { pids: [] as readonly number[] };
  // It may have been started a moment ago.
  const look = async () => {
    said.pids = (await readFile(`${HOME}/swift/ready`, "utf8")).trim().split(" ").slice(1).map(Number);
    return said.pids.length > 0;
  };
  await until(look, { what: "the start of the S3 service", timeoutMs: READY_MS });
  return said.pids;
}

/** What a node says is wrong with its store. */
interface StoreFinding {
  readonly evidence: string;
  readonly wayOut: string;
}

/** What the nodes that an orchestrator knows say about their store, by node; one that can use it says nothing. */
export async function storeFindings(platform: Platform): Promise<ReadonlyMap<string, StoreFinding>> {
  const { json } = await api(platform, "GET", "/nodes", asAdmin(platform));
  const nodes = json as { id: string; findings: (StoreFinding & { id: string })[] }[];
  return new Map(
    nodes.flatMap(({ id, findings }) => {
      const found = findings.find((each) => each.id === "blobs.store");
      return found === undefined ? [] : [[id, found] as const];
    }),
  );
}
