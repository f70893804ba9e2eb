/**
 * `http-proxy` alone under the same load, in a process of its own: the baseline that shows what the edge adds to a bare
 * proxy.
 */

import { fork } from "node:child_process";
import { Agent, createServer } from "node:http";
import { createProxyServer } from "http-proxy";

export interface LibraryProxy {
  readonly port: number;
  stop(): void;
}

/** The flag that makes main.ts this proxy. */
export const PROXY = "--proxy-to";

export function startLibraryProxy(upstream: string): Promise<LibraryProxy> {
  const main = new URL("../main.ts", import.meta.url).pathname;
  const child = fork(main, [PROXY, upstream]);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the library's proxy ended with ${code}`)));
    child.once("message", (port: number) => resolve({ port, stop: () => child.disconnect() }));
  });
}

/** Serves the proxy; runs in the child process. */
export function proxyTo(upstream: string): void {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const proxy = createProxyServer({ target: `http://${upstream}`, agent });
  proxy.on("error", (_error, _request, response) => response?.destroy());
  const server = createServer((request, response) => {
    proxy.web(request, response);
  });
  process.once("disconnect", () => {
    server.close();
    server.closeAllConnections();
    agent.destroy();
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    process.send?.(typeof address === "object" && address !== null ? address.port : 0);
  });
}
