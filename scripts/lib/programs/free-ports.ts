/** Ports for a program that a developer starts beside others. */

import { createServer } from "node:net";

/**
 * The first group of ports that are all free on 127.0.0.1: the wanted ones, or the same ones a hundred or several
 * hundred higher. The same group again while it stays free, so addresses survive a restart.
 * @throws when ten groups are taken
 */
export async function freePorts(wanted: readonly number[]): Promise<number[]> {
  for (let step = 0; step < 1_000; step += 100) {
    const ports = wanted.map((port) => port + step);
    const free = await Promise.all(ports.map(isFree));
    if (free.every(Boolean)) return ports;
  }
  throw new Error(`ports ${wanted.join(" and ")}, and those up to 900 higher, are all in use`);
}

function isFree(port: number): Promise<boolean> {
  if (port > 65_535) return Promise.resolve(false);
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1" }, () => server.close(() => resolve(true)));
  });
}
