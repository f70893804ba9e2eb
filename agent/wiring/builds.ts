/** Constructs the builder. */

import { type BuildParts, startBuilds } from "../builds/start-builds.ts";
import { templateFiles } from "../builds/steps/template-files.ts";
import type { SnapshotParts } from "../snapshots/start-snapshots.ts";
import type { Base } from "./base.ts";
import type { NetworkParts } from "./network.ts";
import type { NodeParts } from "./node.ts";
import type { Recovered } from "./recovery.ts";
import type { LiveParts, SandboxParts } from "./sandboxes.ts";

interface BuildSources extends Pick<Recovered, "found"> {
  readonly network: NetworkParts;
  readonly node: NodeParts;
  readonly live: LiveParts;
  readonly stored: SnapshotParts;
  readonly own: SandboxParts;
}

export function createBuildParts(base: Base, { found, network, node, live, stored, own }: BuildSources): BuildParts {
  const { config, machine, peering, orchestrators, stores, now, log, teardown } = base;
  return startBuilds(
    {
      config,
      machine,
      stores,
      boot: own.boot,
      disposal: live.disposal,
      gate: network.gate,
      stored,
      capabilities: node.capabilities,
      templateFiles: templateFiles({ orchestrators, peering }, teardown),
      refusal: () => node.disk.refusal(),
      cleared: found.cleared,
      now,
      log,
    },
    teardown,
  );
}
