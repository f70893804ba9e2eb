/** The real node proxy for the sandboxes of a fake agent, which are on loopback. */

import { type NodeProxy, type NodeProxyConfig, startNodeProxy } from "../../../agent/proxy/node-proxy.ts";
import { createLog } from "../../../shared/program/log.ts";
import type { FakeAgent } from "../fakes/fake-agent-shapes.ts";

const log = createLog({ component: "test", level: "silent" });

interface AgentProxyConfig extends Pick<NodeProxyConfig, "nodeTokens" | "door"> {
  readonly port?: number;
  /** The address that the fake agent gives every sandbox. */
  readonly address?: string | undefined;
}

/** @param agent undefined while it starts */
export function startAgentProxy(
  { port = 0, address = "127.0.0.1", ...config }: AgentProxyConfig,
  agent: () => Pick<FakeAgent, "live"> | undefined,
): Promise<NodeProxy> {
  return startNodeProxy(
    { host: "127.0.0.1", port, ...config },
    {
      log,
      route(sandboxId) {
        const started = [...(agent()?.live.values() ?? [])].find(({ body }) => body.sandboxId === sandboxId);
        if (started === undefined) return undefined;
        return { executionId: started.executionId, address, controlToken: "c" };
      },
    },
  );
}
