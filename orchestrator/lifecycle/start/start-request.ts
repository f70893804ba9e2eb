/** Makes the request by which a node resumes or forks a sandbox, from the record with the options of the create. Pure. */

import type { Origin, StartRequest } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import type { Seeds } from "../../base/keys/seeds.ts";
import { toPolicy } from "../../network-policy/policy.ts";
import type { Build } from "../../store/builds/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";

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
  | "seedId"
  | "volumeMounts"
>;

export interface StartFacts {
  readonly seeds: Seeds;
  readonly envs: Readonly<Record<string, string>>;
  /** The egress proxy's password, in clear. */
  readonly proxyPassword: string | undefined;
  /** The build that the record names. Undefined: the build was deleted, and the sandbox keeps the settings it has. */
  readonly build: Pick<Build, "image" | "defaultUser" | "defaultWorkdir"> | undefined;
  /** Undefined: the build's image. */
  readonly origin?: Origin | undefined;
}

/** The request without the end, which is set when the node is asked. */
export function startRequest(
  sandbox: Lasting,
  { seeds, envs, proxyPassword, build, origin }: StartFacts,
): Omit<StartRequest, "endAt"> {
  return {
    sandboxId: sandbox.id,
    build: { templateId: sandbox.templateId, buildId: sandbox.buildId, image: build?.image ?? "" },
    resources: { cpuCount: sandbox.cpuCount, memoryMB: sandbox.memoryMB, diskSizeMB: sandbox.diskSizeMB },
    egress: toPolicy({ ...sandbox, proxyPassword }),
    envs: { ...envs },
    accessToken: seeds.envdToken(sandbox),
    ...defined({ defaultUser: build?.defaultUser, defaultWorkdir: build?.defaultWorkdir }),
    onTimeout: sandbox.onTimeout,
    ...(sandbox.onTimeoutMemory ? {} : { onTimeoutMemory: false }),
    ...defined({ origin }),
    projectId: sandbox.projectId,
    ...(sandbox.volumeMounts.length === 0
      ? {}
      : { volumes: sandbox.volumeMounts.map(({ volumeId, path }) => ({ volumeId, path })) }),
  };
}
