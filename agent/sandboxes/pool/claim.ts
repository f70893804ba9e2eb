/** Gives a container without an owner, of the pool or just booted, to a sandbox: sizes and thaws it. A failure removes it. */

import type { Started } from "../../../shared/agent-api/routes.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import { type BecomeSandboxDeps, becomeSandbox, type Launched, type LaunchSpec } from "../become-sandbox.ts";
import type { Disposal } from "../disposal.ts";
import { resized } from "./resize.ts";

export interface Unclaimed {
  readonly container: LiveContainer;
  /** Whether the container is from the pool, and therefore frozen. */
  readonly warm: boolean;
  readonly restored: Started["restored"];
}

export interface ClaimDeps extends BecomeSandboxDeps {
  readonly disposal: Disposal;
}

/** Name and size for people who ask Docker; nothing depends on them, so the first command comes first. */
const TELL_DOCKER_AFTER_MS = 250;

export async function claim(
  spec: LaunchSpec,
  { container: given, warm, restored }: Unclaimed,
  deps: ClaimDeps,
  signal: AbortSignal,
): Promise<Launched> {
  const { disposal, docker, stores } = deps;
  const { sandboxId, resources } = spec.body;
  const teardown = new Teardown(deps.log);
  try {
    const launched = await becomeSandbox(
      spec,
      {
        containerId: given.id,
        warm,
        restored,
        watches: false,
        async discard() {
          await disposal.kill(given);
          disposal.remove(given);
        },
        run() {
          const container = resized(given, resources, { records: stores.containers, containers: docker.containers });
          if (warm) container.cgroup.thaw();
          return container;
        },
      },
      deps,
      { teardown, signal },
    );
    const { container } = launched;
    const changed = container !== given;
    if (warm)
      setTimeout(
        () => void tellDocker(container, { name: `svc-${sandboxId}`, changed }, deps),
        TELL_DOCKER_AFTER_MS,
      ).unref();
    return launched;
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/**
 * Gives Docker the container's name and, if it changed, its size. Docker changes no frozen container, since some runtimes
 * thaw one for that: a restore tells Docker the size before it starts the container again (snapshots/restore).
 */
async function tellDocker(
  { id, resources, cgroup }: LiveContainer,
  { name, changed }: { readonly name: string; readonly changed: boolean },
  { docker: { containers }, log }: ClaimDeps,
): Promise<void> {
  try {
    await containers.rename(id, name);
    if (changed && cgroup.alive() && !cgroup.frozen()) await containers.resize(id, resources);
  } catch (error) {
    log.debug({ err: error, containerId: id }, "could not tell Docker a container's name and size");
  }
}
