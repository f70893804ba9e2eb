/** Wires the agent: first the firewall, then the sandboxes that still run, then the parts in the order in which they need each other. */

import { Teardown } from "../shared/program/teardown.ts";
import type { AgentConfig } from "./config.ts";
import { createEngineWatch } from "./containers/engine-watch.ts";
import type { AgentDeps } from "./deps.ts";
import { watchCapabilities } from "./host/capability-watch.ts";
import { createLimitWatch } from "./host/limit-watch.ts";
import { filesOf, openPeering } from "./joining/open-peering.ts";
import { startRenewal } from "./joining/renewal.ts";
import { startProxy } from "./proxy/start-proxy.ts";
import { createApi } from "./wiring/api.ts";
import { createBuildParts } from "./wiring/builds.ts";
import { createEvents, type Events } from "./wiring/events.ts";
import { startNetwork } from "./wiring/network.ts";
import { createDisk, startDisk } from "./wiring/node-disk.ts";
import { startRecovery, startRepairs } from "./wiring/recovery.ts";
import { createLiveParts, createSandboxParts } from "./wiring/sandboxes.ts";
import { createSnapshotParts, createTakerParts } from "./wiring/snapshots.ts";
import { openState } from "./wiring/store.ts";

export interface Agent {
  /** Where the agent API and the node proxy listen. */
  readonly url: string;
  readonly proxyUrl: string;
  stop(): Promise<void>;
}

export async function startAgent(config: AgentConfig, deps: AgentDeps): Promise<Agent> {
  const teardown = new Teardown(deps.log);
  const events = createEvents();
  try {
    const base = await takeOver(config, deps, events, teardown);
    const parts = await createParts(config, deps, base, teardown);
    const reached = startParts(config, deps, parts, teardown);
    return { ...reached, stop: () => teardown.run() };
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/** Opens the state, sets up the firewall, and takes over what still runs. */
async function takeOver(config: AgentConfig, deps: AgentDeps, events: Events, teardown: Teardown) {
  const { firewall } = deps;
  const stores = await openState(deps, teardown);
  const peering = await openPeering(config, deps);
  teardown.add("firewall shell", () => firewall.stop());
  const recovery = await startRecovery(config, deps, stores, teardown);
  const network = await startNetwork(config, deps, { ...recovery, stores, events, peering }, teardown);
  return { ...recovery, ...network, stores, events, peering };
}

/** Creates each part from finished ones. A part announces to later ones by events, or reads the state of their folder. */
async function createParts(
  config: AgentConfig,
  deps: AgentDeps,
  recovered: Awaited<ReturnType<typeof takeOver>>,
  teardown: Teardown,
) {
  const { log, now, containers } = deps;
  const { events } = recovered;
  const sizes = await deps.sizes.keep(() => recovered.stores.containers.all());
  const capabilities = await watchCapabilities({
    probe: () => deps.probe(sizes),
    fingerprint: deps.criuFiles,
    onChange: () => void events.emit("changed"),
    log,
  });
  teardown.add("capabilities", () => capabilities.stop());
  const limits = createLimitWatch({ read: () => deps.machine.limits(), log });
  teardown.add("limits of the kernel", () => limits.stop());
  const disk = createDisk(config, deps, recovered);
  const base = {
    ...recovered,
    capabilities,
    limits,
    disk,
    ...createLiveParts(config, deps, recovered, teardown),
  };
  const { live, disposal } = base;

  const stored = createSnapshotParts(config, deps, base, teardown);
  const { frozen, holding } = stored;
  const { peering } = base;
  const proxy = await startProxy({ config, peering, live, isHeld: (id) => disk.isHeld(id), log }, teardown);
  const sandboxParts = createSandboxParts(config, deps, { ...base, stored, proxy }, teardown);
  const { pool, sandboxes } = sandboxParts;
  const taking = createTakerParts(config, deps, { ...base, ...sandboxParts, stored }, teardown);
  const building = createBuildParts(config, deps, { ...base, ...sandboxParts, ...stored }, teardown);
  const diskAccount = startDisk(deps, { ...base, ...sandboxParts, frozen, holding, building }, teardown);
  const engine = createEngineWatch({
    containers,
    owned: () => [...live.running().map(({ container }) => container.id), ...pool.ids(), ...frozen.ids()],
    onGone: (id, exit) => {
      if (!pool.lost(id) && !frozen.lost(id)) sandboxes.died(id, exit);
    },
    onBack: () => {
      // A Docker daemon that was started again cannot rename the containers that it found running.
      for (const id of pool.ids()) pool.lost(id);
      events.emit("engineBack");
    },
    now,
    log,
  });
  const parts = { ...base, ...sandboxParts, ...taking, stored, proxy, building, diskAccount, engine };
  const api = await createApi(config, deps, parts, teardown);
  startRenewal({ ...deps, ...config, peering, files: filesOf(config) }, teardown);
  startRepairs(config, deps, { ...base, disposal, instruments: api.instruments }, teardown);
  return { ...parts, api };
}

/** The loops begin, and requests are let in. */
function startParts(
  config: AgentConfig,
  { log }: AgentDeps,
  parts: Awaited<ReturnType<typeof createParts>>,
  teardown: Teardown,
) {
  const { usage, limits, capabilities, reach, expiry, engine, api, sandboxes, taker, building, proxy } = parts;
  usage.start();
  limits.start();
  api.report.start();
  capabilities.start();
  reach.start();
  expiry.start();
  teardown.add("Docker events", () => engine.stop());
  engine.start();
  api.open();
  // First of all at a stop: no new starts, and those under way come to their end.
  teardown.add("starts and snapshots under way", () =>
    Promise.all([sandboxes.drain(), taker.drain(), building.builds.drain()]),
  );
  log.info({ url: api.url, proxyUrl: proxy.url, nodeId: config.nodeId }, "agent listening");
  return { url: api.url, proxyUrl: proxy.url };
}
