/** What the templates of this node add to starts: pool entries with their memory, and their start commands. */

import type { Log } from "../../shared/program/log.ts";
import type { LaunchDeps, LaunchSpec } from "../sandboxes/launch.ts";
import type { startContainerSource } from "../sandboxes/pool/container-source.ts";
import { type PooledTemplatesDeps, pooledTemplates } from "./pooled-templates.ts";
import { startCommand } from "./start-command.ts";
import type { Processes } from "./steps/processes.ts";

export interface TemplateStartsDeps extends Omit<PooledTemplatesDeps, keyof LaunchDeps> {
  readonly launchDeps: LaunchDeps;
  readonly makePooled: ReturnType<typeof startContainerSource>["makePooled"];
  readonly processes: Processes;
  readonly log: Log;
}

/** Lets the pool fill itself with containers that are restored from the stored memory of templates. */
export function createTemplateStarts(deps: TemplateStartsDeps) {
  const templates = pooledTemplates({ ...deps.launchDeps, ...deps });
  deps.makePooled((flavour, signal) => templates.make(flavour, signal));
  return {
    fromPooledTemplate: (spec: LaunchSpec, signal: AbortSignal) => templates.launch(spec, signal),
    startCommand: startCommand({ ...deps, store: deps.stores.builds }),
  };
}
