/** Wires the agent: first the firewall, then the sandboxes that still run, last the API, the proxy and the loops. */

import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { Teardown } from "../shared/program/teardown.ts";
import { identify } from "./api/identity.ts";
import { createInstruments } from "./api/prometheus.ts";
import { createReport } from "./api/report.ts";
import { startApi } from "./api/start-api.ts";
import { startReport } from "./api/start-report.ts";
import { startBuilds } from "./builds/start-builds.ts";
import { templateFiles } from "./builds/steps/template-files.ts";
import { createTemplateStarts } from "./builds/template-starts.ts";
import type { AgentConfig } from "./config.ts";
import { createEngineWatch } from "./containers/engine-watch.ts";
import type { AgentDeps } from "./deps.ts";
import { createDisk, watchDisk } from "./disk/start-disk.ts";
import { createReplaceEgress } from "./egress-supervisor/replace.ts";
import { createSlots } from "./network/slots.ts";
import { startNetwork } from "./network/start-network.ts";
import { startProxy } from "./proxy/start-proxy.ts";
import { recover } from "./recovery/apply.ts";
import { startJanitor } from "./recovery/janitor.ts";
import { createDisposal } from "./sandboxes/disposal.ts";
import { endExpired } from "./sandboxes/expiry.ts";
import { createSandboxParts } from "./sandboxes/wire.ts";
import { startSnapshots } from "./snapshots/start-snapshots.ts";
import { originsHere } from "./snapshots/store/origins.ts";
import { lockState } from "./store/lock.ts";
import { openStores } from "./store/stores.ts";

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
  const { log, plan, containers, links, firewall, annotations } = deps;
  await mkdir(dirname(deps.databasePath), { recursive: true, mode: 0o700 });
  const lock = lockState(deps.lockPath);
  teardown.add("lock", () => lock.release());
  const stores = openStores(deps.databasePath, deps.sealing());
  teardown.add("store", () => stores.close());
  teardown.add("firewall shell", () => firewall.stop());

  const found = await recover({ ...deps, stores });
  const cleared = found.cleared.catch((error: unknown) => log.warn({ err: error }, "could not remove leftovers"));
  teardown.add("leftovers", () => cleared);

  const slots = createSlots({ plan, links, firewall, log, ahead: config.slotsAhead });
  teardown.add("slots", () => slots.stop());
  const kept = [...[...found.sandboxes, ...found.frozen].map(({ container }) => container), ...found.pooled];
  const used = kept.map(({ slot }) => slot.number);
  slots.adopt(used, found.leftoverSlots, cleared);

  const network = await startNetwork({ ...deps, stores, running: found.sandboxes }, teardown);
  const disposal = createDisposal({ ...network, containers, slots, annotations, store: stores.containers, log });
  teardown.add("removals", () => disposal.settled());
  return { stores, found, slots, disposal, gate: network.gate, egressProcess: network.egress };
}

type Base = Awaited<ReturnType<typeof takeOver>>;

/**
 * Constructs each folder's parts in the order in which they need each other. Each part uses only what stands above it:
 * one whose sources come later is constructed first, does nothing, and gets them by `begin`.
 */
async function startParts(config: AgentConfig, deps: AgentDeps, base: Base, teardown: Teardown) {
  const { log, now, containers } = deps;
  const { stores, disposal, found, slots, gate, egressProcess: egress } = base;
  const capabilities = await deps.probe();
  const capable = () => capabilities.memorySnapshots;
  const here = { origins: () => originsHere(capabilities, deps.machine), resolver: deps.plan.gateway };

  const report = createReport({ nodeId: config.nodeId, everyMs: config.heartbeatEveryMs, now, log });
  const parts = { ...base, ...createSandboxParts(config, deps, { ...base, report }, teardown) };
  const { live, pool, usage, expiry } = parts;
  const { running } = live;
  const engine = createEngineWatch({ containers, now, log });
  const disk = createDisk({ ...deps, config, found: found.sandboxes });
  const refusal = () => disk.refusal();

  const diskBytes = (executionId: string) => usage.latest(executionId)?.diskUsed ?? 0;
  const storing = startSnapshots({ ...deps, ...parts, ...here, config, diskBytes, disk }, teardown);
  const { snapshots, frozen, admission } = storing;
  const building = startBuilds(
    {
      ...deps,
      ...parts,
      ...here,
      config,
      snapshots,
      admission,
      capable,
      refusal,
      templateFiles: templateFiles(config),
      cleared: found.cleared,
    },
    teardown,
  );
  const { builds } = building;
  const starts = createTemplateStarts({ ...deps, ...parts, copy: storing.copy });
  const instruments = createInstruments({
    nodeId: config.nodeId,
    running: () => running().length,
    starting: () => live.starting(),
    held: () => running().filter(({ executionId }) => disk.isHeld(executionId)).length,
    disks: () => disk.seen(),
    stored: () => admission.used(),
    pools: () => pool.load(),
    slots: () => slots.taken,
    pendingRemovals: () => disposal.pending,
    orchestratorReached: () => report.reached,
  });

  const proxy = await startProxy({ config, live, isHeld: (id) => disk.isHeld(id), log }, teardown);
  const { rescue, launchFrom: fromSnapshot } = storing;
  const { sandboxes, logs } = parts.begin({ ...starts, fromSnapshot, rescue, proxy, disk, instruments });
  const taker = storing.taker({
    sandboxes,
    capable,
    beforeEnd: (sandbox) => logs.last(sandbox),
    onChange: () => report.soon(),
  });
  watchDisk({ ...deps, disk, sandboxes, usage, builds: building, onChange: () => report.soon() }, teardown);

  const api = await startApi(
    {
      log,
      config,
      sandboxes,
      taker,
      snapshots,
      builds,
      usage,
      logs,
      instruments,
      replaceEgress: createReplaceEgress({ ...deps, gate }),
      egress,
      samples: stores.samples,
      networkLog: stores.networkLog,
      checks: () => ({
        engine: engine.connected ? undefined : "the Docker daemon does not answer",
        "egress process": egress.problem,
        orchestrator: report.reached ? undefined : "the orchestrator does not answer",
      }),
    },
    teardown,
  );
  const { url } = api;
  const identity = identify(config, deps, { apiUrl: url, proxyUrl: proxy.url, capabilities });
  startReport({ ...deps, ...parts, config, report, identity, sandboxes, snapshots, admission, disk }, teardown);
  teardown.add("expiry", () => expiry.stop());
  expiry.begin((executionId) => endExpired(executionId, { sandboxes, taker, log }));
  teardown.add("Docker events", () => engine.stop());
  const janitor = startJanitor({ ...deps, config, stores, disposal, instruments });
  teardown.add("janitor", () => janitor.stop());
  engine.begin({
    owned: () => [...running().map(({ container }) => container.id), ...pool.ids(), ...frozen.ids()],
    onGone: (id, exit) => {
      if (!pool.lost(id) && !frozen.lost(id)) sandboxes.died(id, exit);
    },
    onBack: () => {
      // A Docker daemon that was started again cannot rename the containers that it found running.
      for (const id of pool.ids()) pool.lost(id);
      janitor.engineBack();
    },
  });
  api.open();
  // First of all at a stop: no new starts, and those under way come to their end.
  teardown.add("starts and snapshots under way", () => Promise.all([sandboxes.drain(), taker.drain(), builds.drain()]));
  log.info({ url, proxyUrl: proxy.url, nodeId: config.nodeId }, "agent listening");
  return { url, proxyUrl: proxy.url };
}
