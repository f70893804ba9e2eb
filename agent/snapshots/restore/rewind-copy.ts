/**
 * A copy of a snapshot that is made before the rewind that takes it: restored and frozen. Its row has no process until then, so
 * that no later agent process takes it for a container of the pool; it has the data of its sandbox.
 */

import { randomUUID } from "node:crypto";
import type { StartRequest } from "../../../shared/agent-api/routes.ts";
import { withDeadline } from "../../../shared/program/deadline.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import { becomeSandbox, type Launched } from "../../sandboxes/become-sandbox.ts";
import type { Disposal } from "../../sandboxes/disposal.ts";
import type { Turns } from "../../sandboxes/pool/turns.ts";
import type { FromSnapshot } from "../../sandboxes/start.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import { refuseMemory, restoreContainer } from "./restore.ts";
import { containerOf, runtimeOf, type StartCopyDeps } from "./start-copy.ts";

export interface CopyAsk {
  /** As the start of the sandbox: its project, build and size. It mounts no volumes. */
  readonly body: StartRequest;
  /** A checkpoint with memory and an image. */
  readonly snapshot: Snapshot;
}

export interface MakeSignals {
  /** Aborts when nobody wants the copy any more. A restore that runs then completes first, because killing it costs more. */
  readonly calledOff: AbortSignal;
  readonly limit: AbortSignal;
}

/** When this rejects, no container is left behind. */
export async function makeRewindCopy(
  { body, snapshot }: CopyAsk,
  deps: StartCopyDeps,
  { calledOff, limit }: MakeSignals,
): Promise<LiveContainer> {
  refuseMemory("a copy for the next rewind", deps);
  const signal = AbortSignal.any([calledOff, limit]);
  const turns: Turns = { ...deps.turns, take: (ask) => deps.turns.take(ask, signal) };
  const teardown = new Teardown(deps.log);
  try {
    const from = { snapshot, image: snapshot.image ?? "", memory: true };
    const name = `svc-${body.sandboxId}-${randomUUID().slice(0, 8)}`;
    const runtime = await runtimeOf(from, deps);
    const disk = await containerOf({ body, name, ahead: undefined }, { ...from, runtime }, deps, teardown);
    signal.throwIfAborted();
    const spec = { disk, memoryOf: snapshot, owner: body.projectId, volumes: [], made: true };
    const { container, verified } = await restoreContainer(spec, { ...deps, turns }, { teardown, signal: limit });
    signal.throwIfAborted();
    // What it does until then no rewind to the snapshot has asked for.
    teardown.add("freeze", () => container.cgroup.thaw());
    await container.cgroup.freeze();
    await verified;
    // Otherwise its page server would be there for as long as it waits.
    await withDeadline(deps.images.complete(container.id), signal, () => undefined);
    signal.throwIfAborted();
    teardown.release();
    return container;
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/** Also one that does not die by signal is removed, by Docker. */
export async function endCopy(container: LiveContainer, disposal: RewindDeps["disposal"]): Promise<void> {
  try {
    await disposal.kill(container);
  } finally {
    disposal.remove(container);
  }
}

export interface RewindDeps extends StartCopyDeps {
  readonly disposal: Pick<Disposal, "kill" | "remove">;
}

/** A failure ends the copy. */
export async function rewindToCopy(
  spec: FromSnapshot,
  { container, snapshot }: { readonly container: LiveContainer; readonly snapshot: Snapshot },
  deps: RewindDeps,
  signal: AbortSignal,
): Promise<Launched> {
  const { disposal, stores } = deps;
  const teardown = new Teardown(deps.log);
  try {
    return await becomeSandbox(
      spec,
      {
        containerId: container.id,
        warm: true,
        restored: "memory",
        // envd in the restored memory still has the original's token.
        currentToken: snapshot.disk.controlToken,
        watches: true,
        discard: () => endCopy(container, disposal),
        run() {
          container.cgroup.thaw();
          return container;
        },
        record(running, markRunning) {
          stores.containers.started(running);
          markRunning();
        },
      },
      deps,
      { teardown, signal },
    );
  } catch (error) {
    await teardown.run();
    throw error;
  }
}
