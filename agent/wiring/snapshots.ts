/** Constructs the parts that keep and restore snapshots on this machine, and then what takes them of the live set. */

import type { Teardown } from "../../shared/program/teardown.ts";
import { createContact } from "../api/report.ts";
import type { AgentConfig } from "../config.ts";
import type { AgentDeps } from "../deps.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import { createExpiry } from "../sandboxes/expiry.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import type { SandboxLogs } from "../sandboxes/logs.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import { type SnapshotParts, type StartSnapshotsDeps, startSnapshots } from "../snapshots/start-snapshots.ts";
import { originsHere } from "../snapshots/store/origins.ts";
import { endExpired } from "../snapshots/take/end-expired.ts";
import type { Events } from "./events.ts";

interface SnapshotSources
  extends Pick<StartSnapshotsDeps, "stores" | "found" | "slots" | "gate" | "disposal" | "semaphore" | "disk"> {
  readonly capabilities: CapabilityWatch;
  readonly usage: UsageSampling;
}

export function createSnapshotParts(config: AgentConfig, deps: AgentDeps, base: SnapshotSources, teardown: Teardown) {
  const { capabilities, usage } = base;
  const origins = () => originsHere(capabilities.now(), deps.machine);
  const parts = startSnapshots(
    {
      ...deps,
      ...base,
      config,
      origins,
      memoryRefusal: (what) => capabilities.memoryRefusal(what),
      lazyPages: () => capabilities.now().lazyPages === true,
      resolver: deps.plan.gateway,
      diskBytes: (executionId) => usage.latest(executionId)?.diskUsed ?? 0,
    },
    teardown,
  );
  return { ...parts, origins };
}

interface TakerSources {
  readonly stored: SnapshotParts;
  readonly sandboxes: Sandboxes;
  readonly live: LiveSet;
  readonly logs: SandboxLogs;
  readonly events: Events;
}

/** `expiry` ends or pauses expired sandboxes when the orchestrator does not. */
export function createTakerParts(
  { endGraceMs: graceMs }: AgentConfig,
  { now, log }: AgentDeps,
  { stored, sandboxes, live, logs, events }: TakerSources,
  teardown: Teardown,
) {
  const contact = createContact(now);
  const taker = stored.taker({
    sandboxes,
    beforeEnd: (sandbox) => logs.last(sandbox),
    onChange: () => void events.emit("changed"),
  });
  const expiry = createExpiry({
    running: live.running,
    lastContact: () => contact.last,
    graceMs,
    end: (executionId) => endExpired(executionId, { sandboxes, taker, log }),
    now,
    log,
  });
  teardown.add("expiry", () => expiry.stop());
  events.on("sandboxes", () => expiry.changed());
  return { taker, expiry, contact };
}
