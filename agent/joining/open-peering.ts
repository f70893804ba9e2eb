/** Finds out at the start how this node meets its platform: by what a join has left, by a join now, or by the settings' tokens. */

import { join as joinPath } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { ConfigError } from "../../shared/program/config.ts";
import type { Log } from "../../shared/program/log.ts";
import { readPrevious } from "../../shared/program/previous.ts";
import { digestsIn } from "../../shared/tls/bundle.ts";
import { factsOf, problemOf } from "../../shared/tls/credentials.ts";
import { nodeName } from "../../shared/tls/names.ts";
import { type AgentConfig, readLabels } from "../config.ts";
import { addressProblems } from "./addresses.ts";
import { type JoinOptions, join } from "./join.ts";
import { type Membership, type MembershipFiles, membershipFiles } from "./membership.ts";
import { type Peering, peeringByTokens, peeringOfMember } from "./peering.ts";

export type PeeringConfig = Pick<
  AgentConfig,
  | "stateDir"
  | "joinToken"
  | "orchestratorUrl"
  | "nodeId"
  | "nodeToken"
  | "orchestratorToken"
  | "orchestratorTokenPrevious"
  | "agentUrl"
  | "agentHost"
  | "agentPort"
  | "proxyUrl"
  | "proxyHost"
  | "proxyPort"
  | "labels"
>;

export interface OpenPeeringDeps {
  readonly now: () => number;
  readonly log: Log;
}

export function filesOf({ stateDir }: Pick<AgentConfig, "stateDir">): MembershipFiles {
  return membershipFiles(joinPath(stateDir, "membership"));
}

/** @throws {ConfigError} with what to do */
export async function openPeering(config: PeeringConfig, { now, log }: OpenPeeringDeps): Promise<Peering> {
  const kept = usable(filesOf(config), config);
  checkAddresses(config, kept !== undefined || config.joinToken !== undefined);
  if (kept !== undefined && (config.joinToken === undefined || isCurrent(kept, config, now()))) {
    const problem = problemNow(kept, config, now());
    // It starts all the same: its sandboxes must end in time, and a clock may be set after the start.
    if (problem !== undefined) log.error({ nodeId: config.nodeId }, `the platform will not take this node: ${problem}`);
    return peeringOfMember(kept);
  }
  if (config.joinToken !== undefined) {
    // The authority may have been replaced since the token was made.
    const trusted = kept === undefined ? undefined : digestsIn(kept.credentials.authority);
    return peeringOfMember(await joinPlatform(config, config.joinToken, { now, log, trusted }));
  }
  checkTokens(config);
  const { nodeToken = "", orchestratorToken = "", orchestratorTokenPrevious } = config;
  return peeringByTokens({ nodeToken, orchestratorToken }, readPrevious(orchestratorTokenPrevious));
}

/** Whether an agent could start with these settings. @throws {ConfigError} */
export function checkPeering(config: PeeringConfig): void {
  const joined = usable(filesOf(config), config) !== undefined || config.joinToken !== undefined;
  checkAddresses(config, joined);
  if (!joined) checkTokens(config);
}

/** Joins, keeps the result, and resolves with it. @throws {ConfigError} with what to do */
export async function joinPlatform(
  config: PeeringConfig,
  token: string,
  { now, log, trusted }: OpenPeeringDeps & Pick<JoinOptions, "trusted">,
): Promise<Membership> {
  const files = filesOf(config);
  const { orchestratorUrl, nodeId, nodeToken } = config;
  checkAddresses(config, true);
  try {
    const membership = await join({
      token,
      orchestratorUrl,
      nodeId,
      key: await files.key(),
      apiUrl: config.agentUrl ?? url(config.agentHost, config.agentPort),
      proxyUrl: config.proxyUrl ?? url(config.proxyHost, config.proxyPort),
      labels: readLabels(config.labels),
      nodeToken,
      trusted,
      now,
    });
    files.write(membership);
    const until = new Date(factsOf(membership.credentials.certificate).until).toISOString();
    log.info({ nodeId, orchestratorUrl, until }, "this machine has joined the platform");
    return membership;
  } catch (error) {
    if (error instanceof AppError || error instanceof RangeError) {
      throw new ConfigError([`this machine did not join the platform: ${error.message}`]);
    }
    throw error;
  }
}

function url(host: string, port: number): string {
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function problemNow({ credentials }: Membership, { nodeId }: PeeringConfig, at: number): string | undefined {
  return problemOf(credentials, { as: nodeName(nodeId), at });
}

function isCurrent(kept: Membership, config: PeeringConfig, at: number): boolean {
  return problemNow(kept, config, at) === undefined;
}

/** Reads what the join has left; undefined: this machine has not joined, or joins anew. @throws {ConfigError} when only a new join helps */
function usable(files: MembershipFiles, config: PeeringConfig): Membership | undefined {
  const kept = readable(files, config);
  if (kept === undefined) return undefined;
  const problem = problemNow(kept, config, timeWithin(kept));
  if (problem === undefined) return kept;
  if (config.joinToken !== undefined) return undefined;
  throw new ConfigError([`${files.directory} is of no use to node '${config.nodeId}': ${problem}`]);
}

function readable(files: MembershipFiles, { joinToken }: PeeringConfig): Membership | undefined {
  try {
    return files.read();
  } catch (error) {
    if (joinToken !== undefined && error instanceof ConfigError) return undefined;
    throw error;
  }
}

/** A moment of the certificate's time, to find problems other than those of the clock. */
function timeWithin({ credentials }: Membership): number {
  try {
    return factsOf(credentials.certificate).from + 1_000;
  } catch {
    return 0;
  }
}

function checkAddresses(config: PeeringConfig, joined: boolean): void {
  const problems = addressProblems(config, { joined });
  if (problems.length > 0) throw new ConfigError(problems);
}

function checkTokens({ nodeToken, orchestratorToken }: PeeringConfig): void {
  const missing = [
    ...(nodeToken === undefined ? ["SVC_NODE_TOKEN"] : []),
    ...(orchestratorToken === undefined ? ["SVC_ORCHESTRATOR_TOKEN"] : []),
  ];
  if (missing.length > 0) {
    throw new ConfigError(
      missing.map(
        (name) => `${name} is required on the orchestrator's machine; any other joins with a token: agent --join TOKEN`,
      ),
    );
  }
}
