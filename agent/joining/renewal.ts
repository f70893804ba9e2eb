/**
 * Changes the node's certificate for a fresh one when two thirds of its time have passed, and follows the platform's authority when
 * that is replaced. No open connection notices.
 */

import { nodeAuthorityApi } from "../../shared/agent-api/joining/authority-shapes.ts";
import { memberApi } from "../../shared/agent-api/joining/join-shapes.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { digestsIn, withIssuerFirst } from "../../shared/tls/bundle.ts";
import { factsOf, problemOf, renewalAt } from "../../shared/tls/credentials.ts";
import { followStep, saidBy } from "../../shared/tls/follow.ts";
import { nodeName } from "../../shared/tls/names.ts";
import { requestFor } from "../../shared/tls/request.ts";
import type { MembershipFiles } from "./membership.ts";
import { connectToAny, type Orchestrators } from "./orchestrators.ts";
import { authorization, type Peering } from "./peering.ts";

const LOOK_EVERY_MS = 60_000;
const CALL_LIMIT_MS = 15_000;
/** A failure is tried again each minute and logged once an hour. */
const LOG_EVERY = 60;

export interface RenewalDeps {
  readonly peering: Peering;
  readonly orchestrators: Orchestrators;
  readonly nodeId: string;
  readonly files: Pick<MembershipFiles, "write">;
  readonly now: () => number;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
}

/** Answers of one round: new authorities, the renewed certificate, and that all is known. */
const MOST_STEPS = 3;

/** Does nothing on a node that has not joined. */
export function startRenewal(deps: RenewalDeps, teardown: Teardown): void {
  const { peering, orchestrators, nodeId, files, now, log, everyMs = LOOK_EVERY_MS } = deps;
  const { member, meeting } = peering;
  if (member === undefined) return;
  const orchestrator = connectToAny(
    { ...memberApi, ...nodeAuthorityApi },
    {
      orchestrators,
      name: "the orchestrator",
      headers: () => authorization(peering),
      meeting,
    },
  );
  teardown.add("connection for renewals", () => orchestrator.close());

  const renew = async (signal: AbortSignal) => {
    const { authority, key } = member.credentials.current;
    const body = { request: await requestFor(key) };
    const { certificate, ...tokens } = await orchestrator.call.renew({ body }, { signal, timeoutMs: CALL_LIMIT_MS });
    const credentials = { authority: withIssuerFirst(authority, certificate), certificate, key };
    const problem = problemOf(credentials, { as: nodeName(nodeId), at: now() });
    if (problem !== undefined)
      throw new AppError("failed_precondition", `the new certificate is of no use: ${problem}`);
    const next = { credentials, ...tokens };
    // The disk first: an agent that ends now must not start with a certificate that ends sooner.
    files.write(next);
    member.renewed(next);
    log.info({ nodeId, until: iso(factsOf(certificate).until) }, "renewed this node's certificate");
  };

  /**
   * The node tells the orchestrator what it trusts, and trusts what the answer names. Resolves to whether the node must renew its
   * certificate.
   */
  const follow = async (signal: AbortSignal) => {
    const { credentials } = member;
    const body = saidBy(credentials.current);
    const told = await orchestrator.call.nodeAuthorities({ body }, { signal, timeoutMs: CALL_LIMIT_MS });
    const { credentials: next, renew: isDue } = followStep(credentials.current, told);
    if (next === undefined) return { isDue, isChanged: false };
    const { nodeToken, orchestratorTokens } = peering;
    const kept = { credentials: next, nodeToken, orchestratorToken: orchestratorTokens[0] ?? "" };
    files.write(kept);
    member.renewed(kept);
    log.info({ nodeId, authorities: digestsIn(next.authority) }, "this node trusts other authorities of the platform");
    return { isDue, isChanged: true };
  };

  const followAll = async (signal: AbortSignal) => {
    try {
      for (let step = 0; step < MOST_STEPS; step++) {
        const { isDue, isChanged } = await follow(signal);
        if (isDue) await renew(signal);
        if (!isDue && !isChanged) return;
      }
    } catch (error) {
      // An orchestrator of an earlier version replaces no authority.
      if (isError(error, "not_found") || signal.aborted) return;
      log.debug({ err: error }, "could not ask for the platform's authorities");
    }
  };

  let failures = 0;
  const renewing = loop({ name: "certificate of this node", everyMs, log }, async (signal) => {
    await followAll(signal);
    const facts = factsOf(member.credentials.current.certificate);
    if (now() < renewalAt(facts)) return;
    try {
      await renew(signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted || failures++ % LOG_EVERY !== 0) return;
      const until = iso(facts.until);
      if (now() < facts.until) log.warn({ err: error, until }, "could not renew this node's certificate yet");
      else
        log.error({ err: error, until }, "this node's certificate has ended: join the platform again with a new token");
    }
  });
  teardown.add("renewal of the certificate", () => renewing.stop());
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
