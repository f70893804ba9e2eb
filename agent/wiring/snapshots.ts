/** Constructs the parts that take, keep and restore snapshots on this machine, for the sandboxes of the live set. */

import type { Teardown } from "../../shared/program/teardown.ts";
import type { Report } from "../api/report.ts";
import type { AgentConfig } from "../config.ts";
import type { AgentDeps } from "../deps.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import type { SandboxLogs } from "../sandboxes/logs.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import { type StartSnapshotsDeps, startSnapshots } from "../snapshots/start-snapshots.ts";
import { originsHere } from "../snapshots/store/origins.ts";
import type { SnapshotTaker } from "../snapshots/take/snapshot-taker.ts";

interface SnapshotSources
  extends Pick<StartSnapshotsDeps, "stores" | "found" | "slots" | "gate" | "disposal" | "semaphore" | "disk"> {
  readonly capabilities: Pick<CapabilityWatch, "now" | "memoryRefusal">;
  readonly usage: Pick<UsageSampling, "latest">;
  readonly report: Pick<Report, "soon">;
}

interface SnapshotBeginSources {
  readonly sandboxes: Sandboxes;
  readonly logs: Pick<SandboxLogs, "last">;
}

/** No snapshot is taken before `begin`. */
export function createSnapshotParts(config: AgentConfig, deps: AgentDeps, base: SnapshotSources, teardown: Teardown) {
  const { capabilities, usage, report } = base;
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
  const begin = ({ sandboxes, logs }: SnapshotBeginSources): SnapshotTaker =>
    parts.taker({
      sandboxes,
      beforeEnd: (sandbox) => logs.last(sandbox),
      onChange: () => report.soon(),
    });
  return { ...parts, origins, begin };
}
