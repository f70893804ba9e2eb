/** What the agent uses of its machine: host-deps.ts has the real one, tests pass another. */

import type { NodeFacts } from "../shared/agent-api/routes.ts";
import type { Log } from "../shared/program/log.ts";
import type { Login } from "./builds/images/registry-login.ts";
import type { Processes } from "./builds/steps/processes.ts";
import type { Annotations } from "./containers/annotations.ts";
import type { OpenCgroup } from "./containers/cgroup.ts";
import type { Containers } from "./containers/containers.ts";
import type { CaFor, Envd, NetworkVariables } from "./containers/envd.ts";
import type { EnvdRuntime } from "./containers/envd-runtime.ts";
import type { EgressProcess, OnDecisions, PlaceholderSource } from "./egress-supervisor/process.ts";
import type { Machine } from "./host/machine.ts";
import type { Plan } from "./network/addresses.ts";
import type { Firewall } from "./network/firewall.ts";
import type { Links } from "./network/links.ts";
import type { ReachProbe } from "./network/reach/host-probe.ts";
import type { Traffic } from "./network/traffic.ts";
import type { KeepBallast } from "./node-disk/ballast.ts";
import type { HostGrowth } from "./node-disk/growers.ts";
import type { FindHole } from "./node-disk/holes.ts";
import type { ReadSpace } from "./node-disk/space.ts";
import type { DiskWork } from "./sandbox-disks/disks.ts";
import type { Sizes } from "./sizes/sizes.ts";
import type { Connections } from "./snapshots/connections/connections.ts";
import type { Criu } from "./snapshots/criu/criu.ts";
import type { SnapshotFiles } from "./snapshots/store/files.ts";
import type { NodeSeal } from "./store/seal-key.ts";
import type { Volumes } from "./volumes/volumes.ts";

export interface AgentDeps {
  readonly log: Log;
  readonly plan: Plan;
  readonly containers: Containers;
  readonly openCgroup: OpenCgroup;
  readonly links: Links;
  readonly firewall: Firewall;
  /** Undefined: the operator wants no probes. */
  readonly reachProbe: ReachProbe | undefined;
  readonly annotations: Annotations;
  readonly envd: Envd;
  /** Runs programs inside a container, as clients do. */
  readonly processes: Processes;
  /** Connections to image registries. */
  readonly login: Login;
  readonly runtime: (directory?: string) => Promise<EnvdRuntime>;
  readonly machine: Machine;
  readonly files: SnapshotFiles;
  readonly criu: Criu;
  readonly connections: Connections;
  readonly diskWork: () => DiskWork;
  readonly volumes: Volumes;
  /** Path of `svc-volume-files`. */
  readonly volumeProgram: () => Promise<string>;
  readonly diskUsage: (directory: string) => Promise<number | undefined>;
  /** Counters of a sandbox's link on the host. */
  readonly traffic: (link: string) => Traffic;
  readonly findHole: FindHole;
  readonly readSpace: ReadSpace;
  readonly keepBallast: KeepBallast;
  readonly growth: HostGrowth;
  readonly sizes: Sizes;
  /** @param sizes what sandboxes see of their sizes */
  readonly probe: (sizes: string) => Promise<NodeFacts["capabilities"]>;
  /** Changes with the files of CRIU. */
  readonly criuFiles: () => Promise<string>;
  readonly egress: (onDecisions: OnDecisions, placeholders: PlaceholderSource) => EgressProcess;
  readonly caFor: CaFor;
  readonly networkVariables: NetworkVariables;
  readonly lockPath: string;
  readonly databasePath: string;
  /** For tests: the time limit of a restore. */
  readonly restoreLimitMs?: number | undefined;
  /** Seals secrets in the database; makes its key when there is none. */
  readonly sealing: () => NodeSeal;
  readonly now: () => number;
}
