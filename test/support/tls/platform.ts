/** A platform's authority and the credentials that it has given to the orchestrator and to nodes. */

import { type Authority, makePlatformAuthority, openAuthority } from "../../../shared/tls/authority.ts";
import { type LiveCredentials, liveCredentials } from "../../../shared/tls/live.ts";
import { nodeName, ORCHESTRATOR } from "../../../shared/tls/names.ts";
import type { Door, Meeting } from "../../../shared/tls/peers.ts";

const HOUR_MS = 3_600_000;

export interface TestPlatform {
  readonly authority: Authority;
  /** @param ago how long ago the certificate was made, hours */
  credentials(name: string, ago?: number): Promise<LiveCredentials>;
  /** A node's server, which admits the orchestrator. */
  nodeDoor(nodeId: string): Promise<Door>;
  /** The orchestrator on its way to a node. */
  toNode(nodeId: string): Promise<Meeting>;
}

export async function testPlatform(): Promise<TestPlatform> {
  const authority = await openAuthority(await makePlatformAuthority(Date.now()));
  const credentials = async (name: string, ago = 0) =>
    liveCredentials(await authority.issue(name, Date.now() - ago * HOUR_MS));
  return {
    authority,
    credentials,
    nodeDoor: async (nodeId) => ({
      credentials: await credentials(nodeName(nodeId)),
      admits: (name) => name === ORCHESTRATOR,
    }),
    toNode: async (nodeId) => ({ credentials: await credentials(ORCHESTRATOR), expects: nodeName(nodeId) }),
  };
}
