/**
 * Resumes a paused sandbox for traffic when its policy allows it. Tokens are checked before anything is resumed, and the
 * number of waiting requests is bounded. Of a sandbox that is not resumed, a visitor that holds a token of it learns that
 * it is paused, and others get "not found" like for an unknown sandbox.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import { sameSecret } from "../../../shared/ids.ts";
import { withDeadline, within } from "../../../shared/program/deadline.ts";
import { ENVD_PORT } from "../../../shared/proxy/hop-contract.ts";
import type { Seeds } from "../../base/keys/seeds.ts";
import type { AutoResume, AutoResumeResult, PausedSandbox, VisitorTokens } from "../../edge/sandbox-lookup.ts";
import { findSigner } from "../../edge/signed-url.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import { shown } from "../record-state.ts";
import { isHolder, type ProofDeps, proofOf } from "./holders.ts";
import type { Resuming } from "./resume.ts";

export interface AutoResuming {
  readonly autoResume: AutoResume;
  /** Paused sandboxes that a signed URL may name: those that it resumes, and the last paused ones of the others. */
  pausedSandboxes(): Promise<readonly PausedSandbox[]>;
  /** A sandbox was paused: drops the cached list of paused sandboxes. */
  changed(): void;
}

export interface AutoResumingDeps {
  readonly core: Core;
  readonly resuming: Resuming;
  /** Most requests that wait at once. */
  readonly limit: number;
  readonly projectOf: ProofDeps["projectOf"];
}

/** Shortest timeout of a sandbox that traffic resumed, as in the hosted service. */
const LEAST_SECONDS = 300;
/** How long the list of paused sandboxes is cached, so that wrong signatures do not read the table each time. */
const PAUSED_FRESH_MS = 1_000;
const ROUNDS = 3;

/** Paused sandboxes that do not resume by traffic, and whose signed URLs are recognised: the last ones to be paused. */
const MOST_OTHERS = 2_000;

/** The states of a sandbox that a drain takes to another node. */
const BETWEEN: ReadonlySet<SandboxRecord["state"]> = new Set(["pausing", "paused", "starting"]);
const MOVING_LOOK_MS = 50;

const NOT_FOUND: AutoResumeResult = { is: "not_found" };
const PAUSED: AutoResumeResult = { is: "paused" };
const TRANSITIONING: AutoResumeResult = { is: "transitioning" };

export function createAutoResuming(deps: AutoResumingDeps): AutoResuming {
  const { store, timeouts } = deps.core;
  let waiting = 0;
  let known: { readonly at: number; readonly list: Promise<readonly PausedSandbox[]> } | undefined;
  // A request that names its sandbox by a token alone finds it in the list from then on.
  deps.core.routes.onRemove((_executionId, _sandboxId, reason) => {
    if (reason === "paused") known = undefined;
  });

  async function resumeNow(sandboxId: string, port: number, tokens: VisitorTokens): Promise<AutoResumeResult> {
    const proof = await proofOf(sandboxId, tokens, { seeds: deps.core.seeds, projectOf: deps.projectOf });
    const until = deps.core.now() + timeouts.autoResumeTimeoutMs;
    for (let round = 0; round < ROUNDS; round++) {
      const record = await arrived(sandboxId, until);
      if (record === "on its way") return TRANSITIONING;
      if (record === undefined) return NOT_FOUND;
      if (record.state === "running" || record.state === "snapshotting") return routed(record);
      if (record.state === "rewinding") {
        await deps.core.transitions.settled(sandboxId, timeouts.autoResumeTimeoutMs);
        continue;
      }
      const unresumed = shown(record) === "paused" && isHolder(proof, record) ? PAUSED : NOT_FOUND;
      if (!mayAutoResume(record)) return unresumed;
      const message = denial(record, { port, tokens, seeds: deps.core.seeds });
      if (message !== undefined) return { is: "denied", message };
      if (record.state === "pausing") {
        await deps.core.transitions.settled(sandboxId, timeouts.autoResumeTimeoutMs);
        continue;
      }
      const project = await store.projects.find(record.projectId);
      if (project === undefined) return NOT_FOUND;
      const ask = {
        memory: true,
        seconds: secondsFor(record.timeoutSeconds, deps.core.limits.hours(project)),
        limit: deps.core.limits.starts(project),
      };
      try {
        const resumed = await deps.resuming.resume(sandboxId, ask);
        return routed(resumed.record);
      } catch (reason) {
        return failure(sandboxId, reason, unresumed);
      }
    }
    return TRANSITIONING;
  }

  /** The record, once no drain has the sandbox on its way between two nodes any more: it runs again without being asked. */
  async function arrived(sandboxId: string, until: number): Promise<SandboxRecord | "on its way" | undefined> {
    for (;;) {
      const record = await store.sandboxes.get(sandboxId);
      if (record === undefined || !BETWEEN.has(record.state)) return record;
      // It may have arrived between the two questions.
      if (!(await store.drains.isMoving(sandboxId))) return store.sandboxes.get(sandboxId);
      if (deps.core.now() >= until) return "on its way";
      await sleep(MOVING_LOOK_MS);
    }
  }

  /** Another orchestrator may have started it, and its route is not known here yet. */
  function routed(record: SandboxRecord): AutoResumeResult {
    const { routes, nodes } = deps.core;
    if (routes.lookup(record.id)?.executionId !== record.executionId) routes.add(record);
    const route = routes.lookup(record.id);
    if (route !== undefined) return { is: "running", route };
    // A node that has just joined may not be known here yet. Else the execution has ended, and the record does not say so yet.
    return nodes.place(record.nodeId) === undefined ? TRANSITIONING : NOT_FOUND;
  }

  /** @param unresumed the answer where the reason is not the visitor's */
  function failure(sandboxId: string, reason: unknown, unresumed: AutoResumeResult): AutoResumeResult {
    const known = answerTo(reason);
    if (known !== undefined) return known;
    // The log has the reason for the owner; the visitor does not get it.
    deps.core.log.warn({ err: reason, sandboxId }, "could not resume a sandbox for traffic");
    return AppError.from(reason).status === 404 ? NOT_FOUND : unresumed;
  }

  async function readPausedSandboxes(): Promise<readonly PausedSandbox[]> {
    const signers = await store.pausedSandboxes.signers(MOST_OTHERS);
    return signers.map((one) => ({ sandboxId: one.id, envdAccessToken: deps.core.seeds.envdToken(one) }));
  }

  return {
    async autoResume(sandboxId, port, tokens, signal) {
      if (waiting >= deps.limit)
        return { is: "limited", message: "Too many requests are waiting for paused sandboxes to resume" };
      waiting++;
      try {
        const work = resumeNow(sandboxId, port, tokens);
        // The resume continues when its visitor disconnects or waited too long: other requests may have joined it.
        return await within(timeouts.autoResumeTimeoutMs, (limit) =>
          withDeadline(work, AbortSignal.any([signal, limit]), () => TRANSITIONING),
        );
      } catch (reason) {
        // Where the records cannot be read, nothing is known of the sandbox: not that it is gone either.
        const known = answerTo(reason);
        if (known === undefined) throw reason;
        return known;
      } finally {
        waiting--;
      }
    },

    pausedSandboxes() {
      if (known === undefined || deps.core.now() - known.at > PAUSED_FRESH_MS) {
        known = { at: deps.core.now(), list: readPausedSandboxes() };
        known.list.catch(() => {
          known = undefined;
        });
      }
      return known.list;
    },

    changed() {
      known = undefined;
    },
  };
}

/** The answer to a failure whose reason concerns the visitor. Pure. */
function answerTo(reason: unknown): AutoResumeResult | undefined {
  const { code, status, message } = AppError.from(reason);
  if (code === "too_many_sandboxes") return { is: "limited", message };
  return status === 409 ? TRANSITIONING : undefined;
}

/**
 * Whether traffic may resume the sandbox: its policy allows it, and no memory would be lost. A snapshot without memory
 * needs an explicit connect.
 */
export function mayAutoResume(
  record: Pick<SandboxRecord, "state" | "autoResume" | "snapshot" | "pendingSnapshot" | "resumption">,
): boolean {
  if (!record.autoResume) return false;
  if (record.state === "pausing") return record.pendingSnapshot?.memory === true;
  if (record.state === "starting") return record.resumption?.memory === true;
  return record.state === "paused" && record.snapshot?.memory === true;
}

/** Why this visitor may not resume the sandbox; undefined when it may. Pure. */
export function denial(
  sandbox: Pick<SandboxRecord, "id" | "network" | "seedId">,
  visit: { readonly port: number; readonly tokens: VisitorTokens; readonly seeds: Seeds },
): string | undefined {
  const { port, tokens, seeds } = visit;
  if (port === ENVD_PORT) {
    const envdAccessToken = seeds.envdToken(sandbox);
    const given = tokens.envdAccessToken;
    if (given !== undefined && sameSecret(given, envdAccessToken)) return undefined;
    if (tokens.signed !== undefined && findSigner(tokens.signed, [{ envdAccessToken }]) !== undefined) return undefined;
    return "The sandbox is paused, and a request that resumes it on this port needs its access token";
  }
  if (sandbox.network?.allowPublicTraffic !== false) return undefined;
  const expected = seeds.trafficToken(sandbox);
  if (tokens.trafficAccessTokens?.some((given) => sameSecret(given, expected)) === true) return undefined;
  return "The sandbox is paused, and a request that resumes it needs its traffic access token";
}

/** The timeout of the create request, within the project's limit, and at least the floor. Pure. */
export function secondsFor(created: number, maxHours: number): number {
  return Math.max(LEAST_SECONDS, Math.min(created, maxHours * 3600));
}
