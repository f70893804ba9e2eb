/** The resources of a new sandbox: what its caller asked for within the project's limits, else its template's. Pure. */

import type { CreateBody } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Build } from "../store/builds/record.ts";

/** The largest sandbox of a project; undefined: no limit. */
interface ResourceLimits {
  readonly sandboxCPU: number | undefined;
  readonly sandboxMemoryMB: number | undefined;
  /** Whom to ask for more. */
  readonly contact: string;
}

export interface SandboxResources {
  readonly resources: { readonly cpuCount: number; readonly memoryMB: number; readonly diskSizeMB: number };
  /**
   * What its node must have, where the caller asked for more than the template: a template's own size is a ceiling that a
   * small node may promise, and a caller who asks for more wants to use it.
   */
  readonly least: { readonly cpuCount: number; readonly memoryMB: number } | undefined;
}

/** A template that is larger than the limits keeps its size. @throws {AppError} forbidden, with the limit and the way out */
export function readResources(
  ask: Pick<CreateBody, "cpuCount" | "memoryMB">,
  build: Pick<Build, "cpuCount" | "memoryMB" | "diskSizeMB">,
  limits: ResourceLimits,
): SandboxResources {
  const { cpuCount = build.cpuCount, memoryMB = build.memoryMB } = ask;
  const [moreCpu, moreMemory] = [cpuCount > build.cpuCount, memoryMB > build.memoryMB];
  const { sandboxCPU = Infinity, sandboxMemoryMB = Infinity, contact } = limits;
  if (moreCpu && cpuCount > sandboxCPU)
    throw beyond("cpuCount", `${cpuCount} CPU cores`, `${sandboxCPU}`, ["SVC_MAX_SANDBOX_CPU", contact]);
  if (moreMemory && memoryMB > sandboxMemoryMB)
    throw beyond("memoryMB", `${memoryMB} MiB`, `${sandboxMemoryMB} MiB`, ["SVC_MAX_SANDBOX_MEMORY_MB", contact]);
  return {
    resources: { cpuCount, memoryMB, diskSizeMB: build.diskSizeMB },
    least:
      moreCpu || moreMemory ? { cpuCount: moreCpu ? cpuCount : 0, memoryMB: moreMemory ? memoryMB : 0 } : undefined,
  };
}

/** A size that is legal, but more than the project may have: 403, as for templates. */
function beyond(field: string, asked: string, limit: string, [setting, contact]: readonly [string, string]): AppError {
  const wayOut = `ask for at most ${limit}, or ask ${contact} for more (${setting})`;
  return new AppError(
    "forbidden",
    `body field '${field}': ${asked} is more than a sandbox of this project may have: ${wayOut}`,
  );
}
