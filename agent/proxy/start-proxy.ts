/** Starts the node's proxy over the live set, with its share of the process's descriptors. */

import { connectionLimits } from "../../shared/http/connections/connection-limits.ts";
import { roomFor } from "../../shared/program/descriptors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { Peering } from "../joining/peering.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import { type NodeProxy, type NodeRoute, startNodeProxy } from "./node-proxy.ts";

/** The proxy's share of the process's descriptors. Each of its connections has another one towards a sandbox. */
const PROXY_SHARE = 3 / 8;

export interface StartProxyDeps {
  readonly config: Pick<AgentConfig, "proxyHost" | "proxyPort">;
  readonly peering: Pick<Peering, "orchestratorTokens" | "proxyDoor">;
  readonly live: Pick<LiveSet, "route">;
  /** Why the execution is frozen; undefined: it runs. */
  readonly heldBy: (executionId: string) => NodeRoute["held"];
  readonly log: Log;
}

export async function startProxy(
  { config, peering, live, heldBy, log }: StartProxyDeps,
  teardown: Teardown,
): Promise<NodeProxy> {
  const room = roomFor(PROXY_SHARE, { total: 0, perAddress: 0 });
  const proxy = await startNodeProxy(
    {
      host: config.proxyHost,
      port: config.proxyPort,
      nodeTokens: () => peering.orchestratorTokens,
      door: peering.proxyDoor,
    },
    {
      log,
      // Most connections come from the edge, with the node's token on each: a limit by address would limit the edge.
      connections: connectionLimits({ ...room, perAddress: room.total, name: "proxy", log }),
      route: (sandboxId) => {
        const route = live.route(sandboxId);
        return route === undefined ? undefined : { ...route, held: heldBy(route.executionId) };
      },
    },
  );
  teardown.add("proxy", () => proxy.stop());
  return proxy;
}
