/**
 * An edge and a node's proxy in a process of their own, so that what they hold can be measured. Prints the edge's port, then
 * answers each line on its input with the bytes it holds, after a collection. `--expose-gc`; argument: the containers' address.
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
