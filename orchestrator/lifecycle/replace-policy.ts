/**
 * Replaces the egress options of a running sandbox, on its node and in its record, both or neither:
 *
 * 1. writes the change beside the options (with the sandbox's next version); a crash before this changes nothing,
 * 2. asks the node, which applies a policy as a whole or not at all,
 * 3. replaces the options by the change, with an event.
 *
 * After a crash between 1 and 3, or without an answer, housekeeping repeats the request to the node and ends with the
 * new options in force on both sides; a sandbox that was paused meanwhile resumes with its record's old options. After
 * a refusal the node gets the options of the record again, and the caller gets the node's reason.
 */

import type { EgressReplaced } from "../../shared/agent-api/routes.ts";
import type { NetworkOptions } from "../../shared/api/network.ts";
import { defined } from "../../shared/defined.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import { type Change, openChange, sealChange } from "../network-policy/change.ts";
import { readDestination } from "../network-policy/destinations.ts";
import { type DesiredNetwork, toPolicy } from "../network-policy/policy.ts";
import { openPassword, sealPassword } from "../network-policy/secret.ts";
import { callAgain } from "../nodes/retry.ts";
import type { PlaceholderCheck } from "../secrets/placeholder-check.ts";
import type { Project } from "../store/projects/record.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Core } from "./core.ts";
import { shown } from "./record-state.ts";

/** The egress options that replace all earlier ones. */
export interface NewEgress extends DesiredNetwork {
  /** Egress options only. */
  readonly network: Omit<NetworkOptions, keyof Ingress>;
}

type Ingress = Pick<NetworkOptions, "allowPublicTraffic" | "maskRequestHost" | "httpsPorts">;

export interface NetworkUpdating {
  /**
   * Resolves when the change is in force and in the record. AppError 404; 409 unless the sandbox runs; else the node's
   * reason; also 503 when the change is in force, but the sandbox's programs could not get the authority to trust.
   */
  replace(project: Project, id: string, egress: NewEgress): Promise<void>;
  /** Finishes changes that a crash interrupted. */
  recover(): Promise<void>;
}

export interface NetworkUpdatingDeps {
  readonly core: Core;
  readonly placeholders: PlaceholderCheck;
  /** Names of the identity tokens that the rules of a sandbox may ask for. */
  readonly tokenNames: (record: SandboxRecord) => ReadonlySet<string>;
}

const BATCH = 100;

const NOT_APPLIED =
  "the new network policy is in force, but the sandbox does not answer: its programs may not trust the certificates of " +
  "hosts with rules until the same update is made again";

export function createNetworkUpdating(deps: NetworkUpdatingDeps): NetworkUpdating {
  const { store, sealing, timeouts } = deps.core;

  async function replaceNow(project: Project, id: string, egress: NewEgress): Promise<void> {
    const seen = await running(deps, project, id);
    const desired = { ...egress, network: merged(seen.network, egress.network) };
    const { executionId } = seen;
    const record = await store.networks.begin(seen, seal(id, { executionId, desired }));
    if (record === undefined) throw await refusal(project, id);
    const { trust } = await settle(record, desired, timeouts);
    // Only after the change is recorded: a sandbox that stops its envd must not keep its wider policy.
    if (trust === "not applied") throw new AppError("unavailable", NOT_APPLIED);
  }

  /** Returns when node and record have the change; otherwise throws the reason. */
  async function settle(
    record: SandboxRecord,
    desired: DesiredNetwork,
    limits: { readonly patienceMs: number; readonly repeated?: boolean },
  ): Promise<EgressReplaced> {
    const { id } = record;
    let replaced: EgressReplaced;
    try {
      replaced = await callAgain(() => sendPolicy(record, desired), {
        ...limits,
        now: deps.core.now,
        random: deps.core.random,
      });
    } catch (reason) {
      // The node's state is unknown: the change stays recorded, and housekeeping repeats the request.
      if (isError(reason, "node_unreachable")) throw reason;
      if (isError(reason, "not_found")) {
        await store.networks.replaceChange(record, null);
        throw new AppError("conflict", `Sandbox "${id}" is not running on its node`, { cause: reason });
      }
      await putBack(record);
      throw reason;
    }
    const { network, internet, proxyPassword } = desired;
    const sealedProxyPassword = sealPassword(sealing, proxyPassword, id);
    const changed = await store.changeNetwork(record, { network, internet, sealedProxyPassword }, eventFields(desired));
    if (changed === undefined) throw new AppError("conflict", `Sandbox "${id}" is changing state`);
    return replaced;
  }

  /** Sends the options of the record again: a node that refused may not have restored them itself. */
  async function putBack(record: SandboxRecord): Promise<void> {
    const { id, executionId } = record;
    try {
      if (!(await store.networks.replaceChange(record, seal(id, { executionId })))) return;
      const proxyPassword = openPassword(sealing, record.sealedProxyPassword, id);
      await sendPolicy(record, { ...record, proxyPassword });
      await store.networks.replaceChange(record, null);
    } catch (error) {
      if (isError(error, "not_found")) await store.networks.replaceChange(record, null);
      else deps.core.log.warn({ err: error, sandboxId: id }, "could not restore the network policy yet");
    }
  }

  function sendPolicy({ nodeId, executionId }: SandboxRecord, desired: DesiredNetwork): Promise<EgressReplaced> {
    return deps.core.nodes
      .agent(nodeId)
      .replaceEgress({ params: { executionId }, body: toPolicy(desired) }, { timeoutMs: timeouts.networkTimeoutMs });
  }

  async function recoverNow(id: string): Promise<void> {
    const changing = await store.networks.changing(id);
    if (changing === undefined) return;
    const { record, sealed } = changing;
    if (record.state === "pausing" || record.state === "snapshotting" || record.state === "rewinding") return;
    const change = openChange(sealing, id, sealed);
    if (record.state === "running") await store.operations.take(id, "network", ["running"]);
    if (record.state !== "running" || record.executionId !== change.executionId) {
      // The execution has ended; the next one starts with the options of the record.
      await store.networks.replaceChange(record, null);
    } else if (change.desired === undefined) await putBack(record);
    else await settle(record, change.desired, { patienceMs: 0, repeated: true });
    deps.core.log.warn({ sandboxId: id }, "finished an interrupted change of network options");
  }

  function seal(id: string, change: Change): string {
    return sealChange(sealing, id, change);
  }

  async function refusal(project: Project, id: string): Promise<AppError> {
    await running(deps, project, id);
    return new AppError("conflict", `Sandbox "${id}" is changing state`);
  }

  return {
    async replace(project, id, egress) {
      // Refuses at once; otherwise the caller would wait for a pause to end first.
      const record = await running(deps, project, id);
      await deps.placeholders.check(project.id, egress.network.rules, deps.tokenNames(record));
      await deps.core.transitions.perform({
        sandboxId: id,
        aim: "network",
        same: "wait",
        waitMs: timeouts.patienceMs + timeouts.networkTimeoutMs,
        work: () => replaceNow(project, id, egress),
      });
    },

    async recover() {
      const left = await store.networks.unsettled(BATCH);
      await Promise.all(
        left.map(async ({ id, nodeId }) => {
          const status = deps.core.nodes.get(nodeId)?.status;
          const away = status === undefined || status === "unhealthy" || status === "connecting";
          // Another request is changing it, here or at another orchestrator.
          if (away || deps.core.transitions.current(id) !== undefined) return;
          if ((await store.operations.elsewhere(id)) !== undefined) return;
          const work = () => recoverNow(id);
          await deps.core.transitions
            .perform({ sandboxId: id, aim: "network", same: "wait", waitMs: timeouts.networkTimeoutMs, work })
            .catch((error: unknown) => {
              deps.core.log.warn({ err: error, sandboxId: id }, "could not finish a change of network options yet");
            });
        }),
      );
    },
  };
}

/** AppError 404 or 409 when the sandbox cannot be changed now. */
async function running(
  { core: { store, history } }: NetworkUpdatingDeps,
  project: Project,
  id: string,
): Promise<SandboxRecord> {
  const record = await store.sandboxes.get(id);
  const seen = record === undefined || record.projectId !== project.id ? undefined : shown(record);
  if (record === undefined || seen === undefined) throw history.missing(project, id, record);
  if (seen === "paused") throw new AppError("conflict", `Sandbox "${id}" is paused; resume it first`);
  if (record.state !== "running") throw new AppError("conflict", `Sandbox "${id}" is changing state`);
  return record;
}

/** The options with new egress and unchanged ingress. Undefined: no option is left. */
function merged(before: NetworkOptions | undefined, egress: NewEgress["network"]): NetworkOptions | undefined {
  const { allowPublicTraffic, maskRequestHost, httpsPorts } = before ?? {};
  const after = {
    ...egress,
    ...defined({ allowPublicTraffic, maskRequestHost, httpsPorts }),
  };
  return Object.keys(after).length === 0 ? undefined : after;
}

/** The change as the event shows it: destinations, never header values. */
function eventFields({ network = {}, internet }: DesiredNetwork): Readonly<Record<string, unknown>> {
  const { allowOut = [], denyOut = [], rules = {}, egressProxy } = network;
  return {
    // The fields that clients of the wire protocol know; `network` has the rest. Neither has a header or a credential.
    network_egress: {
      allowed_cidrs: allowOut.filter(isRange),
      denied_cidrs: denyOut.filter(isRange),
      allowed_domains: allowOut.filter((entry) => !isRange(entry)),
    },
    network: {
      allow_out: allowOut,
      deny_out: denyOut,
      rules: Object.keys(rules),
      ...(egressProxy ? { egress_proxy: egressProxy.address } : {}),
      ...defined({ allow_internet_access: internet }),
    },
  };
}

function isRange(entry: string): boolean {
  return readDestination(entry)?.is !== "domain";
}
