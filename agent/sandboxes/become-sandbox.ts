/**
 * Turns a container into a sandbox, from any source: records the execution, lets the processes run, gives them their
 * identity (token, clock, network) and opens the network. The only writer of rows of new executions.
 */

import type { Started, StartRequest } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { within } from "../../shared/program/deadline.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { Timing } from "../../shared/program/tracing/timing.ts";
import type { EnvdInit } from "../containers/envd.ts";
import type { Docker } from "../containers/host-docker.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { Egress } from "../egress-supervisor/host-egress.ts";
import type { Gate } from "../network/gate.ts";
import type { Stores } from "../store/stores.ts";
import { identity } from "./sandbox.ts";

export interface LaunchSpec {
  readonly executionId: string;
  readonly body: StartRequest;
  /** What its parts take. */
  readonly timing: Timing;
  /** The running execution whose place it takes. */
  readonly former?: Former;
}

/** An execution that another one replaces. */
export interface Former {
  readonly executionId: string;
  readonly containerId: string;
  /** Nothing of it runs, and nothing that it sends passes. */
  standStill(): Promise<void>;
  /** Goes on as before. */
  goOn(): Promise<void>;
}

export interface Launched {
  readonly container: LiveContainer;
  readonly startedAt: number;
  /** Whether the container is from the pool. */
  readonly warm: boolean;
  readonly restored: Started["restored"];
  readonly times?: Started["times"];
}

/** What differs between the sources. */
export interface Candidate {
  readonly containerId: string;
  readonly warm: boolean;
  readonly restored: Started["restored"];
  /** Ends a container that no row but the execution's keeps: when that row goes, nothing of the container is left. */
  readonly discard?: () => Promise<void>;
  /** Writes the row of the execution, which does not run yet, in one transaction with the source's. Absent: that row alone. */
  readonly intend?: (addRow: () => void) => void;
  /** Lets the processes run, until envd can answer. */
  readonly run: () => LiveContainer | Promise<LiveContainer>;
  /** Token of its envd until it gets the container's own. Undefined: it has that already. */
  readonly currentToken?: string | undefined;
  /** Whether envd has to resume watches, which were closed before the dump. */
  readonly watches: boolean;
  /** What it runs with is as it was stored: its network opens, and it counts as running, only then. Absent: it is known. */
  readonly verified?: () => Promise<void>;
  /** The last that has to succeed before the sandbox counts as running. */
  readonly confirm?: (container: LiveContainer) => Promise<void>;
  /** Marks the execution as running, together with what the source records. Absent: the execution alone. */
  readonly record?: (container: LiveContainer, markRunning: () => void) => void;
}

export interface BecomeSandboxDeps {
  readonly docker: Docker;
  readonly egress: Egress;
  readonly stores: Stores;
  readonly gate: Gate;
  readonly now: () => number;
  readonly log: Log;
}

/** A pooled container that does not answer within this time after its thaw is replaced by another one. */
const WARM_INIT_LIMIT_MS = 3_000;

/** @param teardown the caller runs it when this rejects: it begins with what the source has taken before the execution's row */
export async function becomeSandbox(
  { executionId, body, timing, former }: LaunchSpec,
  { containerId, warm, restored, currentToken, watches, ...candidate }: Candidate,
  { docker: { envd }, egress, stores: { executions, containers }, gate, now, log }: BecomeSandboxDeps,
  { teardown, signal }: { readonly teardown: Teardown; readonly signal: AbortSignal },
): Promise<Launched> {
  const { sandboxId, egress: policy } = body;
  // Undone after the container: while its row is there, the next agent process takes the container for no pooled one.
  teardown.add("execution", () => executions.remove(executionId));
  if (candidate.discard !== undefined) teardown.add("container", candidate.discard);
  signal.throwIfAborted();
  // From here on a crash leaves a row.
  const { intend = (addRow) => addRow() } = candidate;
  intend(() =>
    executions.add({ id: executionId, containerId, ...identity(body), startedAt: now(), warm, running: false }),
  );

  // After the row, by which the next agent process knows why the former one stands still.
  if (former !== undefined) {
    teardown.add("former execution", () => former.goOn());
    await former.standStill();
  }

  // Sent even when it is empty: what was stored may be from a time when the company had other authorities, or another policy.
  const network = await networkInit(policy, egress);
  const begun = performance.now();
  const container = await candidate.run();
  timing.add("run", performance.now() - begun);
  const { slot, controlToken } = container;
  const { address } = slot;
  const init = toInit(executionId, body, now(), network);
  // If the directory of a watch is gone, envd reports that to its client.
  const resumeWatches = () =>
    envd
      .resumeWatches({ address, controlToken })
      .catch((error: unknown) => log.warn({ err: error, executionId }, "could not resume the watches of a sandbox"));
  const hasNewToken = currentToken !== undefined;
  const openNetwork = async () => {
    await candidate.verified?.();
    signal.throwIfAborted();
    await gate.open(slot, { executionId, sandboxId }, policy);
  };
  const initialiseUntil = (until: AbortSignal) =>
    envd.init(
      { address, controlToken: currentToken ?? controlToken },
      hasNewToken ? { ...init, controlToken } : init,
      until,
    );
  const initialise = () =>
    warm
      ? within(WARM_INIT_LIMIT_MS, (limit) => initialiseUntil(AbortSignal.any([signal, limit])))
      : initialiseUntil(signal);
  await Promise.all([
    watches && !hasNewToken ? resumeWatches() : undefined,
    timing.measure("init", initialise),
    timing.measure("network", openNetwork),
  ]);
  signal.throwIfAborted();
  if (watches && hasNewToken) await resumeWatches();
  const startedAt = now();
  if (candidate.confirm !== undefined) await candidate.confirm(container);
  const { record = (_container, markRunning) => markRunning() } = candidate;
  record(container, () => {
    if (former === undefined) executions.markRunning(executionId, startedAt);
    // Without its row, the former container is none that a later agent process keeps.
    else executions.replace(executionId, startedAt, former.executionId, () => containers.remove(former.containerId));
  });
  teardown.release();
  return { container, startedAt, warm, restored };
}

type NetworkInit = Required<Pick<EnvdInit, "caBundle" | "networkVariables">>;

/** The company's network as a sandbox under this policy sees it, at this moment. */
export async function networkInit(policy: EgressPolicy, egress: Egress): Promise<NetworkInit> {
  const [caBundle, networkVariables] = await Promise.all([egress.caFor(policy), egress.networkVariables()]);
  return { caBundle, networkVariables };
}

function toInit(executionId: string, body: StartRequest, now: number, network: NetworkInit): EnvdInit {
  const { sandboxId, build, envs, accessToken, defaultUser, defaultWorkdir } = body;
  return {
    accessToken,
    envVars: envs,
    timestamp: new Date(now).toISOString(),
    sandboxId,
    templateId: build.templateId,
    executionId,
    ...network,
    ...defined({ defaultUser, defaultWorkdir }),
  };
}
