/** What the agent uses of its machine, in groups: host-deps.ts has the real ones, tests pass others. */

import type { Log } from "../shared/program/log.ts";
import type { Abilities } from "./api/capabilities.ts";
import type { Doctor } from "./api/doctor.ts";
import type { BuildMachine } from "./builds/machine.ts";
import type { ReachProbe } from "./network/reach/host-probe.ts";
import type { Procfs } from "./procfs/procfs.ts";
import type { State } from "./store/state.ts";
import type { VolumeFiles } from "./volumes/volume-files.ts";

/** Each group is described where its parts are. */
export interface AgentMachine extends BuildMachine {
  /** Undefined: the operator wants no probes. */
  readonly reachProbe: ReachProbe | undefined;
  readonly volumeFiles: VolumeFiles;
  readonly procfs: Procfs;
  readonly abilities: Abilities;
  readonly doctor: Doctor;
}

export interface AgentDeps {
  readonly machine: AgentMachine;
  readonly state: State;
  readonly now: () => number;
  readonly log: Log;
}
