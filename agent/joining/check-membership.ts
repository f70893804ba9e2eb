/** Whether the platform takes this machine for the node that it has joined as: its certificate, its tokens and its record. */

import { nodeApi } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import { ConfigError } from "../../shared/program/config.ts";
import type { Log } from "../../shared/program/log.ts";
import { reachFailure } from "../../shared/tls/failures.ts";
import { filesOf, openPeering, type PeeringConfig } from "./open-peering.ts";
import { connectToAny, createOrchestrators } from "./orchestrators.ts";
import { authorization } from "./peering.ts";

const CALL_LIMIT_MS = 10_000;

/** @throws {ConfigError} that says why not */
export async function checkMembership(
  config: PeeringConfig,
  { now, log }: { readonly now: () => number; readonly log: Log },
): Promise<void> {
  if (filesOf(config).read() === undefined) throw new ConfigError(["this machine has not joined the platform"]);
  const { joinToken: _, ...joined } = config;
  const peering = await openPeering(joined, { now, log });
  const { orchestratorUrl, nodeId } = config;
  const orchestrator = connectToAny(nodeApi, {
    orchestrators: createOrchestrators(orchestratorUrl, log),
    name: "the orchestrator",
    headers: () => authorization(peering),
    meeting: peering.meeting,
  });
  try {
    // A report of nothing: it is refused as every report of this node would be.
    await orchestrator.call.reportExits({ params: { nodeId }, body: { exits: [] } }, { timeoutMs: CALL_LIMIT_MS });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new ConfigError([
      `the platform does not take this node: ${reachFailure(error, orchestratorUrl) ?? error.message}`,
    ]);
  } finally {
    await orchestrator.close();
  }
}
