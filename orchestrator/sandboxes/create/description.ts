/** The record of a new sandbox and the start request for its node, from what its caller asked for and what it starts from. */

import type { Seal } from "../../../shared/program/sealing/seal.ts";
import type { Seeds } from "../../base/keys/seeds.ts";
import { settingsOf } from "../../builds/settings.ts";
import type { LaunchRequest } from "../../lifecycle/start/launch-request.ts";
import { startRequest } from "../../lifecycle/start/start-request.ts";
import { sealPassword } from "../../network-policy/secret.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxOptions } from "../options.ts";
import type { Source } from "./source.ts";

export interface DescriptionDeps {
  readonly seeds: Seeds;
  readonly sealing: Seal;
  readonly now: () => number;
}

interface Asked {
  readonly project: Project;
  readonly options: SandboxOptions;
  readonly source: Source;
}

export function describeSandbox(
  id: string,
  { project, options, source }: Asked,
  { seeds, sealing, now }: DescriptionDeps,
): { readonly sandbox: LaunchRequest["sandbox"]; readonly start: LaunchRequest["start"] } {
  const { envs: own, proxyPassword, ...lasting } = options;
  const { template, build, alias, origin, resources, volumeMounts } = source;
  const envs = { ...settingsOf(sealing, build).envs, ...own };
  const sandbox = {
    ...lasting,
    ...resources,
    id,
    projectId: project.id,
    templateId: template.id,
    buildId: build.id,
    alias,
    volumeMounts,
    envdVersion: build.envdVersion,
    createdAt: now(),
    seedId: seeds.currentId,
    sealedEnvs: sealing.close(JSON.stringify(envs), id),
    sealedProxyPassword: sealPassword(sealing, proxyPassword, id),
  };
  return { sandbox, start: startRequest(sandbox, { seeds, envs, proxyPassword, build, origin }) };
}
