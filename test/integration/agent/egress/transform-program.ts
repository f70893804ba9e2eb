/**
 * `transform` in a process of its own, so that a test can measure how many bytes it holds. Prints the port on which it
 * listens, then answers each input line with the bytes it holds after a garbage collection. Needs `--expose-gc`; arguments:
 * host name, port to dial.
 */

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { makeAuthority } from "../../../../agent/egress/rewrite/certificates.ts";
import { transform } from "../../../../agent/egress/rewrite/transform.ts";
import { openTrust } from "../../../../agent/egress/rewrite/trust.ts";

const [hostname = "", destination = ""] = process.argv.slice(2);
const authority = await makeAuthority("test node", { from: Date.now() - 60_000, until: Date.now() + 3_600_000 });

const trust = openTrust("");

const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
  transform(socket, {
    hostname,
    port: 80,
    tls: false,
    headers: { "X-Rule": "1" },
    first: Buffer.alloc(0),
    authority,
    trust: trust(),
    connect: dial,
    resolve: () => Promise.resolve({ problem: "there is no value" }),
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));

function dial(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(destination), host: "127.0.0.1", allowHalfOpen: true });
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
}

createInterface(process.stdin).on("line", () => {
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  process.stdout.write(`${heapUsed + external + arrayBuffers}\n`);
});
process.stdin.on("end", () => process.exit(0));
