/** Constructs the builder. */

import type { Teardown } from "../../shared/program/teardown.ts";
import { type BuildParts, type StartBuildsDeps, startBuilds } from "../builds/start-builds.ts";
import { templateFiles } from "../builds/steps/template-files.ts";
import type { AgentConfig } from "../config.ts";
import type { AgentDeps } from "../deps.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import type { Peering } from "../joining/peering.ts";
import type { DiskReserve } from "../node-disk/reserve.ts";
import type { RecoveryResult } from "../recovery/apply.ts";
import type { Stores } from "../store/stores.ts";

interface BuildSources
  extends Pick<StartBuildsDeps, "boot" | "disposal" | "gate" | "snapshots" | "admission" | "origins"> {
  readonly peering: Peering;
  readonly stores: Stores;
  readonly found: RecoveryResult;
  readonly capabilities: CapabilityWatch;
  readonly disk: DiskReserve;
}

export function createBuildParts(
  config: AgentConfig,
  deps: AgentDeps,
  base: BuildSources,
  teardown: Teardown,
): BuildParts {
  const { capabilities, disk, found } = base;
  return startBuilds(
    {
      ...deps,
      ...base,
      config,
      memoryRefusal: (what) => capabilities.memoryRefusal(what),
      refusal: () => disk.refusal(),
      templateFiles: templateFiles({ orchestratorUrl: config.orchestratorUrl, peering: base.peering }, teardown),
      cleared: found.cleared,
    },
    teardown,
  );
}
