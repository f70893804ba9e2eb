/**
 * Gives nodes the values of placeholders at the moment of use, and counts uses. A node gets a value only for an execution
 * that it runs now, and only what the network rules of that sandbox ask for; names resolve in the sandbox's own project.
 */

import type { valueApi } from "../../shared/agent-api/value-shapes.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import { openChange } from "../network-policy/change.ts";
import { readAsks, rulesWant, type Wanted } from "../network-policy/placeholders.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { OnFirstUse } from "../store/secrets/uses.ts";
import type { Store } from "../store/store.ts";
import type { Vault } from "./vault.ts";

/** The identity tokens of sandboxes. */
interface TokenSource {
  /** Names of the tokens that the sandbox may use. */
  names(record: SandboxRecord): ReadonlySet<string>;
  /** Undefined: the sandbox has no token of that name. */
  tokenFor(
    record: SandboxRecord,
    name: string,
  ): Promise<{ readonly value: string; readonly usableUntil: number } | undefined>;
}

export interface ValueHandlersDeps {
  readonly store: Store;
  readonly vault: Vault;
  readonly sealing: Seal;
  readonly tokens: TokenSource;
  /** Called in the transaction that notes the first use of a version by an execution. */
  readonly onFirstUse: OnFirstUse;
  readonly now: () => number;
}

/** States in which programs of the sandbox may send requests. */
const SENDING: readonly SandboxRecord["state"][] = ["starting", "running", "pausing", "snapshotting", "rewinding"];
/** A new version and a deletion take effect within this time. */
const USABLE_MS = 1_000;
/** The orchestrator counts at most this many uses from one report, because a node can send any number. */
const MOST_USES = 1_000_000_000;

export function createValueHandlers(deps: ValueHandlersDeps): Handlers<typeof valueApi, string> {
  const { store } = deps;

  /** @throws {AppError} forbidden */
  async function permitted(nodeId: string, executionId: string, wanted: Wanted | undefined): Promise<SandboxRecord> {
    const found = await store.networks.ofExecution(executionId);
    if (found === undefined || found.record.nodeId !== nodeId || !SENDING.includes(found.record.state)) {
      throw new AppError("forbidden", `node '${nodeId}' does not run the execution '${executionId}'`);
    }
    const { record, sealed } = found;
    const change = sealed === undefined ? undefined : openChange(deps.sealing, record.id, sealed);
    // While a change is under way, the node may have the options before it or after it.
    const all = [record.network?.rules, change?.desired?.network?.rules];
    if (wanted === undefined || !all.some((rules) => rules !== undefined && rulesWant(rules, wanted))) {
      throw new AppError("forbidden", "the network rules of the sandbox do not have this placeholder");
    }
    return record;
  }

  async function secret(record: SandboxRecord, name: string): Promise<string> {
    const stored = await store.secrets.value(record.projectId, name);
    if (stored === undefined) throw missing("secret", name);
    const value = await deps.vault.open(stored);
    const { id: sandboxId, projectId, executionId, nodeId } = record;
    const use = { secretId: stored.id, version: stored.version, name, projectId, sandboxId, executionId, nodeId };
    // Before the value leaves: a use that cannot be noted does not take place.
    if (!(await store.secretUses.note(use, deps.onFirstUse))) throw missing("secret", name);
    return value;
  }

  return {
    async resolveValue({ body }, { caller, header }) {
      header("cache-control", "no-store");
      const wanted = readAsks(body.asks);
      const record = await permitted(caller, body.executionId, wanted);
      const { kind, name } = wanted as Wanted;
      if (kind === "secret") {
        return { value: await secret(record, name), usableUntil: deps.now() + USABLE_MS };
      }
      const token = await deps.tokens.tokenFor(record, name);
      if (token === undefined) throw missing("identity token", name);
      return token;
    },

    async reportUses({ body }, { caller }) {
      const sums = new Map<string, { executionId: string; name: string; count: number; lastAt: number }>();
      for (const { executionId, asks, count, lastAt } of body.uses) {
        const wanted = readAsks(asks);
        if (wanted?.kind !== "secret") continue;
        const at = `${executionId} ${wanted.name}`;
        const before = sums.get(at) ?? { count: 0, lastAt: 0 };
        sums.set(at, {
          executionId,
          name: wanted.name,
          count: Math.min(MOST_USES, before.count + count),
          lastAt: Math.max(before.lastAt, lastAt),
        });
      }
      await store.secretUses.report({ id: body.reportId, nodeId: caller }, [...sums.values()]);
    },
  };
}

function missing(what: string, name: string): AppError {
  return new AppError("not_found", `the ${what} '${name}' does not exist`);
}
