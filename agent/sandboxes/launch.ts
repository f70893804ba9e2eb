/** Turns a container into a sandbox: records, resizes and thaws it, sets its identity, opens its network. A failure leaves nothing. */

import type { Started, StartRequest } from "../../shared/agent-api/routes.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { anySignal } from "../../shared/program/any-signal.ts";
import type { Log } from "../../shared/program/log.ts";
import { Teardown } from "../../shared/program/teardown.ts";
import type { Containers } from "../containers/containers.ts";
import type { CaFor, Envd, EnvdInit, NetworkVariables } from "../containers/envd.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { Gate } from "../network/gate.ts";
import type { ContainerStore } from "../store/containers.ts";
import type { ExecutionStore } from "../store/executions.ts";
import type { Disposal } from "./disposal.ts";
import { resized } from "./resize.ts";

export interface Provisioned {
  readonly container: LiveContainer;
  /** Whether the container is from the pool, and therefore frozen. */
  readonly warm: boolean;
}

/** Gets a container for a start; `pool/provision.ts` does. */
export type Provision = (body: StartRequest, signal: AbortSignal) => Promise<Provisioned>;

export interface LaunchSpec {
  readonly executionId: string;
  readonly body: StartRequest;
}

export interface Launched {
  readonly container: LiveContainer;
  readonly startedAt: number;
  readonly warm: boolean;
  readonly restored: Started["restored"];
}

export interface LaunchDeps {
  readonly provision: Provision;
  readonly disposal: Pick<Disposal, "kill" | "remove">;
  readonly gate: Pick<Gate, "open">;
  readonly envd: Pick<Envd, "init">;
  readonly store: Pick<ExecutionStore, "add" | "markRunning" | "remove">;
  readonly sizes: Pick<ContainerStore, "resize">;
  readonly containers: Pick<Containers, "rename" | "resize" | "chooseCpus">;
  readonly caFor: CaFor;
  readonly networkVariables: NetworkVariables;
  readonly now: () => number;
  readonly log: Log;
}

/** A pooled container that does not answer within this time after its thaw is replaced by another one. */
const WARM_INIT_LIMIT_MS = 3_000;
/** Name and size for people who ask Docker; nothing depends on them, so the first command comes first. */
const TELL_DOCKER_AFTER_MS = 250;

export async function launch(spec: LaunchSpec, deps: LaunchDeps, signal: AbortSignal): Promise<Launched> {
  for (;;) {
    const provisioned = await deps.provision(spec.body, signal);
    try {
      return await claim(spec, provisioned, deps, signal);
    } catch (error) {
      if (!provisioned.warm || signal.aborted) throw error;
      deps.log.warn(
        { err: error, containerId: provisioned.container.id },
        "pooled container is not usable, trying the next one",
      );
    }
  }
}

/** Takes over a container without an owner. The container is removed when this rejects. */
export async function claim(
  { executionId, body }: LaunchSpec,
  { container: given, warm }: Provisioned,
  deps: LaunchDeps,
  signal: AbortSignal,
): Promise<Launched> {
  const { disposal, gate, envd, store, now, log } = deps;
  const teardown = new Teardown(log);
  const { sandboxId, projectId, egress, endAt, onTimeout, onTimeoutMemory = true, record } = body;
  // Undone last: while its row is there, the next agent process takes the container for no pooled one.
  teardown.add("row", () => store.remove(executionId));
  teardown.add("container", async () => {
    await disposal.kill(given);
    disposal.remove(given);
  });
  try {
    signal.throwIfAborted();
    const intended = {
      id: executionId,
      sandboxId,
      projectId,
      containerId: given.id,
      egress,
      endAt,
      warm,
      record,
    };
    const does = { does: onTimeout, memory: onTimeoutMemory };
    store.add({ ...intended, onTimeout: does, startedAt: now(), running: false });
    const container = resized(given, body.resources, { records: deps.sizes, containers: deps.containers });

    // Sent even when it is empty: the template may have been built while the company had other authorities.
    const network = await networkInit(egress, deps);
    if (warm) container.cgroup.thaw();
    const limit = warm ? anySignal(signal, AbortSignal.timeout(WARM_INIT_LIMIT_MS)) : signal;
    await Promise.all([
      envd.init(
        { address: container.slot.address, controlToken: container.controlToken },
        toInit(executionId, body, now(), network),
        limit,
      ),
      gate.open(container.slot, { executionId, sandboxId }, egress),
    ]);
    signal.throwIfAborted();

    const startedAt = now();
    store.markRunning(executionId, startedAt);
    teardown.release();
    if (warm) {
      const changed = container !== given;
      setTimeout(
        () => void tellDocker(container, { name: `svc-${sandboxId}`, changed }, deps),
        TELL_DOCKER_AFTER_MS,
      ).unref();
    }
    return { container, startedAt, warm, restored: "nothing" };
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
  { containers, log }: Pick<LaunchDeps, "containers" | "log">,
): Promise<void> {
  try {
    await containers.rename(id, name);
    if (changed && cgroup.alive() && !cgroup.frozen()) await containers.resize(id, resources);
  } catch (error) {
    log.debug({ err: error, containerId: id }, "could not tell Docker a container's name and size");
  }
}

type NetworkInit = Required<Pick<EnvdInit, "caBundle" | "networkVariables">>;

/** The company's network as a sandbox under this policy sees it, at this moment. */
export async function networkInit(
  policy: EgressPolicy,
  { caFor, networkVariables }: Pick<LaunchDeps, "caFor" | "networkVariables">,
): Promise<NetworkInit> {
  return { caBundle: await caFor(policy), networkVariables: await networkVariables() };
}

/** @param network from `networkInit` */
export function toInit(executionId: string, body: StartRequest, now: number, network: NetworkInit) {
  const { sandboxId, build, envs, accessToken, defaultUser, defaultWorkdir } = body;
  return {
    accessToken,
    envVars: envs,
    timestamp: new Date(now).toISOString(),
    sandboxId,
    templateId: build.templateId,
    executionId,
    ...network,
    ...(defaultUser === undefined ? {} : { defaultUser }),
    ...(defaultWorkdir === undefined ? {} : { defaultWorkdir }),
  };
}
