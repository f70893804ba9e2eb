/** Creates a sandbox: the list of the steps. A step that refuses leaves nothing behind, and `launch` cleans up after itself. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { defined } from "../../../shared/defined.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import type { Limits } from "../../access/limits.ts";
import type { Background } from "../../base/background.ts";
import type { Ending } from "../../lifecycle/ending/kill.ts";
import type { Launch } from "../../lifecycle/start/launch.ts";
import type { Pools } from "../../nodes/warm-pools.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Spawns } from "../../templates/usage.ts";
import { type DescriptionDeps, describeSandbox } from "./description.ts";
import { type RequestDeps, readRequest } from "./request.ts";
import { findSource, helpsPool, type SourceDeps } from "./source.ts";

export interface CreatingDeps extends RequestDeps, SourceDeps, DescriptionDeps {
  readonly limits: Limits;
  readonly launch: Launch;
  readonly pools: Pools;
  readonly spawns: Spawns;
  readonly ending: Ending;
  readonly background: Background;
}

/** Aborted: the client has disconnected. */
export type Create = (
  project: Project,
  body: CreateBody,
  how: { readonly defaultTimeoutSeconds: number; readonly signal: AbortSignal },
) => Promise<SandboxRecord>;

export function createCreating(deps: CreatingDeps): Create {
  return async (project, body, { defaultTimeoutSeconds, signal }) => {
    const options = await readRequest(project, body, defaultTimeoutSeconds, deps);
    const source = await findSource(project, body, deps);
    const { sandbox, start } = describeSandbox(newSandboxId(), { project, options, source }, deps);
    const record = await deps.launch({
      sandbox,
      start,
      limit: deps.limits.starts(project),
      region: project.region,
      ...defined({ least: source.least, nodeId: source.nodeId }),
    });
    if (helpsPool(source)) deps.pools.used(source.build);
    deps.spawns.count(source.template.id);
    // The client cannot learn the sandbox's id.
    if (signal.aborted) deps.background.run("kill unwanted sandbox", () => deps.ending.kill(record.id, "abandoned"));
    return record;
  };
}
