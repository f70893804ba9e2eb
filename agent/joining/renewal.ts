/** Changes the node's certificate for a fresh one when two thirds of its time have passed. No open connection notices. */

import { memberApi } from "../../shared/agent-api/joining/join-shapes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { factsOf, problemOf, renewalAt } from "../../shared/tls/credentials.ts";
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
}

/** Does nothing on a node that has not joined. */
export function startRenewal(deps: RenewalDeps, teardown: Teardown): void {
  const { peering, orchestrators, nodeId, files, now, log } = deps;
  const { member, meeting } = peering;
  if (member === undefined) return;
  const orchestrator = connectToAny(memberApi, {
    orchestrators,
    name: "the orchestrator",
    headers: () => authorization(peering),
    meeting,
  });
  teardown.add("connection for renewals", () => orchestrator.close());

  const renew = async (signal: AbortSignal) => {
    const { authority, key } = member.credentials.current;
    const body = { request: await requestFor(key) };
    const { certificate, ...tokens } = await orchestrator.call.renew({ body }, { signal, timeoutMs: CALL_LIMIT_MS });
    const credentials = { authority, certificate, key };
    const problem = problemOf(credentials, { as: nodeName(nodeId), at: now() });
    if (problem !== undefined)
      throw new AppError("failed_precondition", `the new certificate is of no use: ${problem}`);
    const next = { credentials, ...tokens };
    // The disk first: an agent that ends now must not start with a certificate that ends sooner.
    files.write(next);
    member.renewed(next);
    log.info({ nodeId, until: iso(factsOf(certificate).until) }, "renewed this node's certificate");
  };

  let failures = 0;
  const renewing = loop({ name: "certificate of this node", everyMs: LOOK_EVERY_MS, log }, async (signal) => {
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
