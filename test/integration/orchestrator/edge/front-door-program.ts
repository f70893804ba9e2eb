/**
 * An edge and a node's proxy in a process of their own, so that a test can measure how many bytes they hold. Prints the
 * edge's port, then answers each input line with the bytes held after a garbage collection. Needs `--expose-gc`; argument:
 * the containers' address.
 */

import { createInterface } from "node:readline";
import { openFrontDoor } from "./front-door.ts";

const address = process.argv[2] ?? "";
const door = await openFrontDoor();
door.add({ sandboxId: "straight", address });
door.add({ sandboxId: "proxied", address, sameHost: false });

process.stdout.write(`${door.port}\n`);
createInterface(process.stdin).on("line", () => {
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  process.stdout.write(`${heapUsed + external + arrayBuffers}\n`);
});
process.stdin.on("end", () => process.exit(0));
