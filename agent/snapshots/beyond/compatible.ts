/** Whether a snapshot of another node can be started here, decided by its manifest before anything of it is downloaded. Pure. */

import { AppError } from "../../../shared/http/errors.ts";
import { differences, type Origins } from "../../host/origins.ts";
import type { Note } from "./note.ts";

/** This node. */
export interface Here extends Omit<Origins, "envd"> {
  /** The version of envd that this agent belongs to. */
  readonly envd: string;
  /** Whether the directory of the runtime that the snapshot's container mounts is here. */
  readonly hasRuntime: boolean;
}

/**
 * @param memory the start restores memory; without it only the disk has to fit
 * @throws {AppError} snapshot_incompatible with everything that differs
 */
export function checkCompatible(
  { origins, note }: { readonly origins: Origins | undefined; readonly note: Pick<Note, "id" | "memory" | "disk"> },
  here: Here,
  memory: boolean,
): void {
  if (origins === undefined) return;
  const withMemory = memory && note.memory;
  const { architecture, cpuFlags, kernel, criu, envd, hasRuntime } = here;
  // A program of another architecture does not start from its disk either.
  const machine = withMemory ? { architecture, cpuFlags, kernel, criu } : { architecture, cpuFlags: origins.cpuFlags };
  const found = differences(origins, machine);
  if (withMemory && found.length === 0 && !hasRuntime)
    found.push(
      `its memory maps files of envd ${origins.envd} in ${note.disk.runtime}, and this machine has envd ${envd} without that directory`,
    );
  if (found.length === 0) return;
  const wayOut =
    withMemory && architecture === origins.architecture ? "; with memory: false its disk alone starts here" : "";
  throw new AppError(
    "snapshot_incompatible",
    `snapshot ${note.id} is of another node and cannot be restored here: ${found.join("; ")}${wayOut}`,
  );
}
