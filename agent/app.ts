/** Wires the agent: first the firewall, then the sandboxes that still run, last the API, the proxy and the loops. */

import { Teardown } from "../shared/program/teardown.ts";
import type { AgentConfig } from "./config.ts";
import { createEngineWatch } from "./containers/engine-watch.ts";
import type { AgentDeps } from "./deps.ts";
import { watchCapabilities } from "./host/capability-watch.ts";
import { createLimitWatch } from "./host/limit-watch.ts";
import { startProxy } from "./proxy/start-proxy.ts";
import { createApiParts } from "./wiring/api.ts";
import { createBuildParts } from "./wiring/builds.ts";
import { createDiskParts } from "./wiring/disk.ts";
import { startNetwork } from "./wiring/network.ts";
import { startRecovery } from "./wiring/recovery.ts";
import { createSandboxParts } from "./wiring/sandboxes.ts";
import { createSnapshotParts } from "./wiring/snapshots.ts";
import { openState } from "./wiring/store.ts";

export interface Agent {
  /** Where the agent API and the node proxy listen. */
  readonly url: string;
  readonly proxyUrl: string;
  stop(): Promise<void>;
}

export async function startAgent(config: AgentConfig, deps: AgentDeps): Promise<Agent> {
  const teardown = new Teardown(deps.log);
  try {
    const base = await takeOver(config, deps, teardown);
    const reached = await startParts(config, deps, base, teardown);
    return { ...reached, stop: () => teardown.run() };
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/** Opens the state, sets up the firewall, and takes over what still runs. */
async function takeOver(config: AgentConfig, deps: AgentDeps, teardown: Teardown) {
  const { firewall } = deps;
  const stores = await openState(deps, teardown);
  teardown.add("firewall shell", () => firewall.stop());
  const recovery = await startRecovery(config, deps, stores, teardown);
  const network = await startNetwork(config, deps, { ...recovery, stores }, teardown);
  return { ...recovery, ...network, stores };
}

type Recovered = Awaited<ReturnType<typeof takeOver>>;

/**
 * Calls each folder's constructor in the order in which the parts need each other. Each part uses only what stands above
 * it: one whose sources come later is constructed first, does nothing, and gets them by `begin`, `start` or `watch`.
 */
async function startParts(config: AgentConfig, deps: AgentDeps, recovered: Recovered, teardown: Teardown) {
  const { log, now, containers } = deps;
  const sizes = await deps.sizes.keep(() => recovered.stores.containers.all());
  const capabilities = await watchCapabilities({ probe: () => deps.probe(sizes), fingerprint: deps.criuFiles, log });
  teardown.add("capabilities", () => capabilities.stop());

  const api = createApiParts(config, deps, teardown);
  const { report } = api;
  const base = { ...recovered, report, capabilities };
  const running = createSandboxParts(config, deps, base, teardown);
  const { live, pool, usage, memoryKills, disposal, replaceEgress } = running;
  const engine = createEngineWatch({ containers, now, log });
  const { disk, account: diskAccount, watch } = createDiskParts(config, deps, { ...base, usage }, teardown);
  const storing = createSnapshotParts(config, deps, { ...base, ...running, disk }, teardown);
  const { snapshots, holding, frozen, admission } = storing;
  const building = createBuildParts(config, deps, { ...base, ...running, ...storing, disk }, teardown);
  const { builds } = building;
  const limits = createLimitWatch({ read: () => deps.machine.limits(), log });
  teardown.add("limits of the kernel", () => limits.stop());
  limits.begin();
  const { slots, values, reach } = base;
  const instruments = api.measure({
    live,
    disk,
    diskAccount,
    admission,
    pool,
    slots,
    values,
    disposal,
    memoryKills,
    limits,
    reach,
    capabilities,
  });

  const proxy = await startProxy({ config, live, isHeld: (id) => disk.isHeld(id), log }, teardown);
  running.makePooled(storing.copy);
  const { sandboxes, logs, startExpiry } = running.begin({
    ...building,
    ...storing,
    proxy,
    disk,
    limits,
    reach,
    instruments,
  });
  const taker = storing.begin({ sandboxes, logs });
  watch({ sandboxes, live, pool, frozen, holding, disposal, builds: building });

  const parts = {
    sandboxes,
    taker,
    snapshots,
    holding,
    builds,
    live,
    pool,
    usage,
    logs,
    admission,
    disk,
    diskAccount,
    instruments,
  };
  const listening = await api.start({ ...base, ...parts, replaceEgress, engine, proxy });
  capabilities.begin(() => report.soon());
  reach.begin(() => report.soon());
  startExpiry(taker);
  teardown.add("Docker events", () => engine.stop());
  const janitor = base.janitor({ disposal, instruments, reach });
  engine.begin({
    owned: () => [...live.running().map(({ container }) => container.id), ...pool.ids(), ...frozen.ids()],
    onGone: (id, exit) => {
      if (!pool.lost(id) && !frozen.lost(id)) sandboxes.died(id, exit);
    },
    onBack: () => {
      // A Docker daemon that was started again cannot rename the containers that it found running.
      for (const id of pool.ids()) pool.lost(id);
      janitor.engineBack();
    },
  });
  listening.open();
  // First of all at a stop: no new starts, and those under way come to their end.
  teardown.add("starts and snapshots under way", () => Promise.all([sandboxes.drain(), taker.drain(), builds.drain()]));
  const { url } = listening;
  log.info({ url, proxyUrl: proxy.url, nodeId: config.nodeId }, "agent listening");
  return { url, proxyUrl: proxy.url };
}
