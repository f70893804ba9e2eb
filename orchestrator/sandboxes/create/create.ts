/** Creates a sandbox: the list of the steps. A step that refuses leaves nothing behind, and `launch` cleans up after itself. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { defined } from "../../../shared/defined.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import type { Callers } from "../../access/wire.ts";
import type { Base } from "../../base/base.ts";
import type { Lifecycle } from "../../lifecycle/wire.ts";
import { readAllowed } from "../../network-policy/proxy.ts";
import type { Pools } from "../../nodes/pool-targets.ts";
import type { PlaceholderCheck } from "../../secrets/placeholder-check.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { TemplateNames } from "../../templates/names.ts";
import type { Spawns } from "../../templates/usage.ts";
import type { ResolveMounts } from "../../volumes/mounts.ts";
import { describeSandbox } from "./description.ts";
import { readRequest } from "./request.ts";
import { findSource, helpsPool } from "./source.ts";

export interface CreatingParts {
  readonly lifecycle: Lifecycle;
  readonly callers: Callers;
  readonly placeholders: PlaceholderCheck;
  readonly templates: TemplateNames;
  readonly pools: Pools;
  readonly spawns: Spawns;
  readonly resolveMounts: ResolveMounts;
}

/** Aborted: the client has disconnected. */
export type Create = (
  project: Project,
  body: CreateBody,
  how: { readonly defaultTimeoutSeconds: number; readonly signal: AbortSignal },
) => Promise<SandboxRecord>;

export function createCreating(base: Base, parts: CreatingParts): Create {
  const { lifecycle, callers, placeholders, templates, pools, spawns, resolveMounts } = parts;
  const proxyRanges = readAllowed(base.config.egressProxyAllow);
  const { limits, refusals } = callers;
  return async (project, body, { defaultTimeoutSeconds, signal }) => {
    const options = await readRequest(project, body, defaultTimeoutSeconds, {
      limits,
      refusals,
      placeholders,
      proxyRanges,
    });
    const source = await findSource(project, body, { limits, refusals, resolveMounts, templates });
    const { sandbox, start } = describeSandbox(newSandboxId(), { project, options, source }, base);
    const record = await lifecycle.launch({
      sandbox,
      start,
      limit: limits.starts(project),
      region: project.region,
      ...defined({ least: source.least, nodeId: source.nodeId, imageNodeId: source.build.nodeId }),
    });
    if (helpsPool(source)) pools.used(source.build);
    spawns.count(source.template.id);
    // The client cannot learn the sandbox's id.
    if (signal.aborted)
      base.background.run("kill unwanted sandbox", () => lifecycle.ending.kill(record.id, "abandoned"));
    return record;
  };
}
