/** Wires the agent: first the firewall, then the sandboxes that still run, then the parts in the order in which they need each other. */

import { statusLine } from "../shared/program/service/status-line.ts";
import { Teardown } from "../shared/program/teardown.ts";
import type { AgentConfig } from "./config.ts";
import { createEngineWatch } from "./containers/engine-watch.ts";
import type { AgentDeps } from "./deps.ts";
import { filesOf } from "./joining/open-peering.ts";
import { startRenewal } from "./joining/renewal.ts";
import { startProxy } from "./proxy/start-proxy.ts";
import { createApi } from "./wiring/api.ts";
import { type Base, createBase } from "./wiring/base.ts";
import { createBlobParts } from "./wiring/blobs.ts";
import { createBuildParts } from "./wiring/builds.ts";
import { startDiskPressure } from "./wiring/disk-pressure.ts";
import { createLeasePart } from "./wiring/lease.ts";
import { startNetwork } from "./wiring/network.ts";
import { createNode } from "./wiring/node.ts";
import { startRecovery, startRepairs } from "./wiring/recovery.ts";
import { createLive, createSandboxParts } from "./wiring/sandboxes.ts";
import { createSnapshotParts, createTakerParts } from "./wiring/snapshots.ts";

export interface Agent {
  /** Where the agent API and the node proxy listen. */
  readonly url: string;
  readonly proxyUrl: string;
  /** What it does now, in a few words. */
  status(): string;
  stop(): Promise<void>;
}

export async function startAgent(config: AgentConfig, deps: AgentDeps): Promise<Agent> {
  const teardown = new Teardown(deps.log);
  try {
    const base = await createBase(config, deps, teardown);
    const reached = startParts(base, await createParts(base));
    return { ...reached, stop: () => teardown.run() };
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/** Takes over what still runs, then creates each part from finished ones. A part announces to later ones by events. */
async function createParts(base: Base) {
  const { config, machine, peering, orchestrators, events, now, log, teardown } = base;
  const { containers } = machine.docker;
  const recovered = await startRecovery(base);
  const { found } = recovered;
  const network = await startNetwork(base, recovered);
  const node = await createNode(base, recovered);
  const blobs = await createBlobParts(base);
  const live = createLive(base, { found, network, node });
  const lease = await createLeasePart(base, { network, node, live });
  const stored = createSnapshotParts(base, { found, network, node, live, blobStore: blobs.store });
  const heldBy = (id: string) => (lease.isFrozen(id) ? "lease" : node.disk.isHeld(id) ? "disk" : undefined);
  const proxy = await startProxy({ config, peering, live: live.set, heldBy, log }, teardown);
  const own = createSandboxParts(base, { found, network, node, live, lease, stored, proxy });
  const taking = createTakerParts(base, { node, live, lease, stored, own });
  const building = createBuildParts(base, { found, network, node, live, stored, own });
  const { pool, sandboxes } = own;
  const diskAccount = startDiskPressure(base, { node, live, lease, stored, own, building });
  const ofSandboxes = () => live.set.running().map(({ container }) => container.id);
  const engine = createEngineWatch({
    containers,
    owned: () => [...ofSandboxes(), ...pool.ids(), ...stored.frozen.ids(), ...stored.readyCopies.ids()],
    isSandbox: (id) => ofSandboxes().includes(id),
    onGone: (id, exit) => {
      if (!pool.lost(id) && !stored.frozen.lost(id) && !stored.readyCopies.lost(id)) sandboxes.died(id, exit);
    },
    onBack: () => {
      // A Docker daemon that was started again cannot rename the containers that it found running.
      for (const id of pool.ids()) pool.lost(id);
      events.emit("engineBack");
    },
    now,
    log,
  });
  const api = await createApi(base, {
    network,
    node,
    blobs,
    live,
    lease,
    stored,
    own,
    taking,
    building,
    proxy,
    engine,
    diskAccount,
  });
  startRenewal({ nodeId: config.nodeId, peering, orchestrators, files: filesOf(config), now, log }, teardown);
  startRepairs(base, { reach: network.reach, disposal: live.disposal, instruments: api.instruments });
  return { network, node, blobs, live, lease, stored, taking, sandboxes, building, engine, api, proxy, pool };
}

/** The loops begin, and requests are let in. */
function startParts({ config, log, teardown }: Base, parts: Awaited<ReturnType<typeof createParts>>) {
  const { network, node, blobs, live, lease, stored, taking, sandboxes, building, engine, api, proxy, pool } = parts;
  live.usage.start();
  node.limits.start();
  lease.start();
  api.report.start();
  node.capabilities.start();
  network.reach.start();
  blobs.store.start();
  stored.uploads.start();
  stored.imageUploads.start();
  stored.heldImages.start();
  stored.imageArrivals.start();
  taking.expiry.start();
  teardown.add("Docker events", () => engine.stop());
  engine.start();
  api.start();
  // First of all at a stop: no new starts, and those under way come to their end.
  teardown.add("starts and snapshots under way", () =>
    Promise.all([sandboxes.drain(), taking.taker.drain(), building.builds.drain()]),
  );
  log.info({ url: api.url, proxyUrl: proxy.url, nodeId: config.nodeId }, "agent listening");
  const status = () => {
    const orchestrator = taking.contact.reached ? undefined : "not reached";
    return statusLine({ sandboxes: live.set.running().length, pools: pool.load(), needs: { orchestrator } });
  };
  return { url: api.url, proxyUrl: proxy.url, status };
}
