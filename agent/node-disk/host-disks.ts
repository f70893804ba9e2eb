/** The disks of this machine: of the node itself, and of its sandboxes. */

import { join } from "node:path";
import type { AgentConfig } from "../config.ts";
import { type RunCommand, runCommand } from "../host/command.ts";
import { diskUsage } from "../host/disk-usage.ts";
import { nativeProgram } from "../host/native-program.ts";
import { type Disks, type DiskWork, hostDisks } from "../sandbox-disks/disks.ts";
import { ofOwnDisks } from "../sandbox-disks/with-disks.ts";
import { hostBallast, type KeepBallast } from "./ballast.ts";
import { type HostGrowth, hostGrowth } from "./growers.ts";
import { type FindHole, findHole } from "./holes.ts";
import { type ReadSpace, readSpace, reserveOf, tooLarge } from "./space.ts";

export interface NodeDisks {
  /** What was done to disks of sandboxes since the agent began. */
  readonly work: () => DiskWork;
  /** Bytes of a directory tree; undefined when measuring it takes too long. */
  readonly usage: (directory: string) => Promise<number | undefined>;
  readonly growth: HostGrowth;
  readonly findHole: FindHole;
  readonly readSpace: ReadSpace;
  readonly keepBallast: KeepBallast;
}

/**
 * The sandboxes' own disks, each of which finds room beside the reserve of the node's disk.
 * @param run for what a start waits for
 */
export function hostSandboxDisks(config: AgentConfig, run: RunCommand): Disks {
  const disks = hostDisks({
    root: config.disksDir ?? join(config.stateDir, "disks"),
    run,
    copier: () => nativeProgram(runCommand, "sandbox-disks/svc-disk-copy", config.runDir),
    async refusal(bytes) {
      const space = await readSpace(disks.root);
      return tooLarge(space, reserveOf(space, config.diskReserveMb), bytes);
    },
  });
  return disks;
}

export function hostNodeDisks({ stateDir }: AgentConfig, disks: Disks): NodeDisks {
  const growth = hostGrowth(runCommand);
  return {
    work: () => disks.work(),
    usage: ofOwnDisks(disks, ({ usedBytes }) => usedBytes, diskUsage(runCommand)),
    growth: { ...growth, countFiles: ofOwnDisks(disks, ({ usedInodes }) => usedInodes, growth.countFiles) },
    findHole,
    readSpace,
    keepBallast: hostBallast(stateDir, runCommand, readSpace),
  };
}
