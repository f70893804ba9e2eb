/** Wires the agent: first the firewall, then the sandboxes that still run, last the API, the proxy and the loops. */

import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { nodeApi } from "../shared/agent-api/routes.ts";
import { connect } from "../shared/http/client.ts";
import { Teardown } from "../shared/program/teardown.ts";
import { applyReply } from "./api/apply-reply.ts";
import { describeNode } from "./api/heartbeat.ts";
import { identify } from "./api/identity.ts";
import { createInstruments } from "./api/prometheus.ts";
import { createReport } from "./api/report.ts";
import { startApi } from "./api/start-api.ts";
import { pooledTemplates } from "./builds/pooled-templates.ts";
import { startBuilds } from "./builds/start-builds.ts";
import { startCommand } from "./builds/start-command.ts";
import { templateFiles } from "./builds/steps/template-files.ts";
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
import { startContainerSource } from "./sandboxes/container-source.ts";
import { createDisposal } from "./sandboxes/disposal.ts";
import { createExpiry, endExpired } from "./sandboxes/expiry.ts";
import { launch } from "./sandboxes/launch.ts";
import { createLiveSet } from "./sandboxes/live-set.ts";
import { startSandboxLogs } from "./sandboxes/logs.ts";
import { createSandboxes } from "./sandboxes/sandboxes.ts";
import { createMetrics } from "./sandboxes/usage.ts";
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
    const parts = { ...base, ...startContainerSource(config, deps, base, teardown) };
    const reached = await startSandboxes(config, deps, parts, teardown);
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

type ContainerSource = ReturnType<typeof startContainerSource>;

/**
 * The live set, what watches it, and what serves it. Each part uses only what stands above it: one whose sources come
 * later is constructed first, does nothing, and gets them by `begin`.
 */
async function startSandboxes(config: AgentConfig, deps: AgentDeps, parts: Base & ContainerSource, teardown: Teardown) {
  const { log, now, containers } = deps;
  const { stores, disposal, pool, found, slots, gate, egressProcess: egress } = parts;
  const launchDeps = { ...deps, ...parts, store: stores.executions };
  const capabilities = await deps.probe();
  const capable = () => capabilities.memorySnapshots;
  const here = { origins: () => originsHere(capabilities, deps.machine), resolver: deps.plan.gateway };

  const live = createLiveSet();
  for (const sandbox of found.sandboxes) live.add(sandbox);
  const { running } = live;
  const report = createReport({ nodeId: config.nodeId, everyMs: config.heartbeatEveryMs, now, log });
  const expiry = createExpiry({ lastContact: () => report.lastContact, graceMs: config.endGraceMs, running, now, log });
  const engine = createEngineWatch({ containers, now, log });
  const metrics = createMetrics({ ...deps, store: stores.samples, everyMs: config.metricsEveryMs, running });
  const disk = createDisk({ ...deps, config, found: found.sandboxes });

  const diskBytes = (executionId: string) => metrics.latest(executionId)?.diskUsed ?? 0;
  const storing = startSnapshots({ ...deps, ...parts, ...here, config, diskBytes, disk }, teardown);
  const { snapshots, frozen } = storing;
  const templates = pooledTemplates({ ...launchDeps, copy: (...request) => storing.copy(...request) });
  parts.makePooled((flavour, signal) => templates.make(flavour, signal));
  const runStart = startCommand({ ...deps, store: stores.builds });
  const instruments = createInstruments({
    nodeId: config.nodeId,
    running: () => running().length,
    starting: () => live.starting(),
    held: () => running().filter(({ executionId }) => disk.isHeld(executionId)).length,
    disks: () => disk.seen(),
    stored: () => storing.admission.used(),
    pools: () => pool.load(),
    slots: () => slots.taken,
    pendingRemovals: () => disposal.pending,
    orchestratorReached: () => report.reached,
  });

  const proxy = await startProxy({ config, live, isHeld: (id) => disk.isHeld(id), log }, teardown);
  const logs = startSandboxLogs({ ...deps, store: stores.logs, running });
  teardown.add("logs", () => logs.stop());
  teardown.add("metrics", () => metrics.stop());
  metrics.begin();
  const sandboxes = createSandboxes({
    live,
    launch: async (spec, signal) => {
      const { origin } = spec.body;
      const launched = await (origin === undefined
        ? launch(spec, launchDeps, signal)
        : ((await templates.launch(spec, signal)) ?? storing.launchFrom(spec, origin, signal)));
      await runStart(spec.body, launched, signal);
      return launched;
    },
    store: stores.executions,
    closeStreams: (executionId) => proxy.close(executionId),
    beforeEnd: (sandbox) => logs.last(sandbox),
    rescue: (sandbox) => storing.rescue(sandbox),
    onStart: (sandbox) => metrics.started(sandbox),
    onChange: () => {
      expiry.changed();
      report.soon();
    },
    onExit: (reason) => {
      instruments.exited(reason);
      report.exited();
    },
    maxSandboxes: config.maxSandboxes,
    refusal: () => disk.refusal(),
    startLimitMs: config.startLimitMs,
    disposal,
    now,
    log,
  });
  const captures = storing.captures({
    sandboxes,
    capable,
    beforeEnd: (sandbox) => logs.last(sandbox),
    onChange: () => report.soon(),
  });
  const building = startBuilds(
    {
      ...deps,
      ...parts,
      config,
      snapshots,
      admission: storing.admission,
      ...here,
      capable,
      refusal: () => disk.refusal(),
      templateFiles: templateFiles(config),
      cleared: found.cleared,
    },
    teardown,
  );
  const { builds } = building;
  watchDisk({ ...deps, disk, sandboxes, metrics, builds: building, onChange: () => report.soon() }, teardown);

  const api = await startApi(
    {
      log,
      config,
      sandboxes,
      captures,
      snapshots,
      builds,
      metrics,
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
  const orchestrator = connect(nodeApi, {
    url: config.orchestratorUrl,
    name: "orchestrator",
    headers: { authorization: `Bearer ${config.nodeToken}` },
  });
  teardown.add("orchestrator connection", () => orchestrator.close());
  // Snapshots of templates belong to their builds; the orchestrator has a record of every other one.
  const reported = () => snapshots.list().filter(({ executionId }) => stores.builds.get(executionId) === undefined);
  teardown.add("report", () => report.stop());
  report.begin({
    orchestrator: orchestrator.call,
    describe: () =>
      describeNode(config, identity, {
        machine: deps.machine.load(),
        pools: pool.load(),
        running: [...running(), ...live.leaving()],
        snapshots: reported(),
        starting: live.starting(),
        stored: storing.admission.used(),
        isHeld: (executionId) => disk.isHeld(executionId),
      }),
    exits: () => stores.executions.exits(),
    acknowledge: (ids) => stores.executions.acknowledge(ids),
    apply: (reply) => applyReply(reply, { pool, sandboxes, snapshots, log }),
  });
  teardown.add("expiry", () => expiry.stop());
  expiry.begin((executionId) => endExpired(executionId, { sandboxes, captures, log }));
  teardown.add("engine events", () => engine.stop());
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
  teardown.add("starts and snapshots under way", () =>
    Promise.all([sandboxes.drain(), captures.drain(), builds.drain()]),
  );
  log.info({ url, proxyUrl: proxy.url, nodeId: config.nodeId }, "agent listening");
  return { url, proxyUrl: proxy.url };
}
