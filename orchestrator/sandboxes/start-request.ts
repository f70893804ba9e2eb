/** What a node is told when a sandbox is started again, or a copy of it: made from the record, as at its create. Pure. */

import type { Origin, StartBody } from "../../shared/agent-api/routes.ts";
import { envdToken } from "../../shared/ids.ts";
import { toPolicy } from "../network/policy.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Build } from "../store/templates.ts";

type Lasting = Pick<
  SandboxRecord,
  | "id"
  | "projectId"
  | "templateId"
  | "buildId"
  | "cpuCount"
  | "memoryMB"
  | "diskSizeMB"
  | "internet"
  | "network"
  | "onTimeout"
  | "onTimeoutMemory"
>;

export interface StartFacts {
  readonly seed: string;
  readonly envs: Readonly<Record<string, string>>;
  /** Of the egress proxy, in the clear. */
  readonly proxyPassword: string | undefined;
  /** Of the record; undefined: it was deleted since, and the sandbox keeps what it has. */
  readonly build: Pick<Build, "image" | "defaultUser" | "defaultWorkdir"> | undefined;
  readonly origin?: Origin;
}

/** Without the end, which is known when the node is asked. */
export function startBody(
  sandbox: Lasting,
  { seed, envs, proxyPassword, build, origin }: StartFacts,
): Omit<StartBody, "endAt"> {
  return {
    sandboxId: sandbox.id,
    build: { templateId: sandbox.templateId, buildId: sandbox.buildId, image: build?.image ?? "" },
    resources: { cpuCount: sandbox.cpuCount, memoryMB: sandbox.memoryMB, diskSizeMB: sandbox.diskSizeMB },
    egress: toPolicy({ ...sandbox, proxyPassword }),
    envs: { ...envs },
    accessToken: envdToken(seed, sandbox.id),
    ...(build?.defaultUser === undefined ? {} : { defaultUser: build.defaultUser }),
    ...(build?.defaultWorkdir === undefined ? {} : { defaultWorkdir: build.defaultWorkdir }),
    onTimeout: sandbox.onTimeout,
    ...(sandbox.onTimeoutMemory ? {} : { onTimeoutMemory: false }),
    ...(origin === undefined ? {} : { origin }),
    projectId: sandbox.projectId,
  };
}
