/**
 * Admits a node of another machine when it is reached at both of its addresses, and tells two agents with one identity apart:
 * while the earlier one answers, the later one is refused.
 */

import type { NodeFacts } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { Meeting } from "../../shared/tls/peers.ts";
import { callBack, runAt } from "./call-back.ts";

type Place = Pick<NodeFacts, "nodeId" | "serviceInstanceId" | "apiUrl" | "proxyUrl">;

export interface AdmissionDeps {
  readonly tokenTo: (nodeId: string) => string;
  readonly meeting: (nodeId: string) => Meeting | undefined;
}

export interface Admission {
  /**
   * Resolves with what is not reached of the node, at once for a run that was reached before.
   * @param former the run that reported last; undefined: none did lately
   * @throws {AppError} conflict while another agent is this node
   */
  admit(place: Place, former: Place | undefined): Promise<readonly Finding[]>;
  forget(nodeId: string): void;
}

export function createAdmission({ tokenTo, meeting }: AdmissionDeps): Admission {
  /** The run of each node that was reached. */
  const admitted = new Map<string, string>();
  const depsOf = (nodeId: string) => ({ token: tokenTo(nodeId), meeting: meeting(nodeId) });

  /** A former run that still answers at another address is another machine, or a copy of this one. */
  async function refuseSecond(place: Place, former: Place): Promise<void> {
    const { nodeId } = place;
    if (former.serviceInstanceId === place.serviceInstanceId || former.apiUrl === place.apiUrl) return;
    const run = await runAt(former.apiUrl, nodeId, depsOf(nodeId)).catch(() => undefined);
    if (run?.serviceInstanceId === former.serviceInstanceId) throw another(place, former.apiUrl);
  }

  return {
    async admit(place, former) {
      const { nodeId, apiUrl, serviceInstanceId } = place;
      if (admitted.get(nodeId) === runOf(place)) return [];
      if (former !== undefined) await refuseSecond(place, former);
      // On the machine of the orchestrator nothing stands between the two.
      if (apiUrl.startsWith("https:")) {
        const { run, unreached } = await callBack(place, depsOf(nodeId));
        if (run !== undefined && run.serviceInstanceId !== serviceInstanceId) throw another(place, apiUrl);
        if (unreached.length > 0) return unreached;
      }
      admitted.set(nodeId, runOf(place));
      return [];
    },
    forget: (nodeId) => void admitted.delete(nodeId),
  };
}

function runOf({ serviceInstanceId, apiUrl, proxyUrl }: Place): string {
  return `${serviceInstanceId} ${apiUrl} ${proxyUrl}`;
}

function another({ nodeId, apiUrl }: Place, where: string): AppError {
  return new AppError(
    "conflict",
    `another agent is node '${nodeId}' already and answers at ${where}, so the one that reports from ${apiUrl} is refused: stop one of them; a machine that was copied needs a name and a key of its own (set SVC_NODE_ID, remove the directory 'membership' of its state, join with a new token)`,
  );
}

/** Of a report that was under way meanwhile. */
export function removed(nodeId: string): AppError {
  return new AppError(
    "forbidden",
    `node '${nodeId}' was removed while it reported: join the platform again with a new token`,
  );
}
