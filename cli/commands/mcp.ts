/** Serves sandboxes as tools of the Model Context Protocol until the host ends the connection. */

import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { Action } from "../definition.ts";
import { usage } from "../failure.ts";
import { OwnSandboxes } from "../mcp/own-sandboxes.ts";
import { createMcpServer } from "../mcp/server.ts";

const DEFAULTS = { name: "svc", limit: 5, lifetime: 3600 } as const;

export const mcp: Action = async (context, _args, options) => {
  const { name = DEFAULTS.name, limit = DEFAULTS.limit, timeout: lifetime = DEFAULTS.lifetime } = options;
  if (limit < 1) throw usage("--limit is at least 1");
  // A wrong key or address is said at once, and not by the first tool.
  const sandboxes = new OwnSandboxes(context, { name, limit, lifetime });
  await sandboxes.list();
  const server = createMcpServer(context, sandboxes);
  const { stdin, stdout } = context.streams;
  const ended = new Promise<void>((resolve) => {
    server.server.onclose = resolve;
    stdin.once("end", resolve);
    stdin.once("close", resolve);
    context.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await server.connect(new StdioServerTransport(stdin, stdout));
  await ended;
  await server.close();
};
