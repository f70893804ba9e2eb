/**
 * Closes, in the images of a dump, the TCP connections that leave the sandbox, before anything is restored from them. The
 * dumped sandbox keeps its own.
 */

import { open, readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { addressNumber, contains, parseRange } from "../../../shared/policy/ranges.ts";
import type { Inside } from "../store/manifest.ts";
import { type Connection, isLoopback, surviving } from "./decide.ts";
import { queuesOf, socketsOf, withClosed, withoutClosing } from "./image.ts";

/** The name under which CRIU removes the lock: it takes the name of its run, but no more than 21 characters of it. */
const LOCK = "svc";
export const LOCK_TABLE = `inet CRIU-${LOCK}`;
const READS_AT_ONCE = 8;
/** Of an image of a connection: the numbers come first, and then the bytes in its queues, which may be megabytes. */
const START_BYTES = 512;
/** Most addresses of earlier containers that a sandbox keeps. */
const MOST_ADDRESSES = 16;

/** The addresses that a network gives to sandboxes. */
interface SandboxNetwork {
  readonly subnet: string;
  readonly gateway: string;
}

/**
 * @param address of the dumped sandbox
 * @throws {Error} if an image is damaged
 */
export async function closeOutside(images: string, address: string, network: SandboxNetwork): Promise<Inside> {
  const read = (name: string) => readFile(join(images, name));
  const [files, inventory] = await Promise.all([read("files.img"), read("inventory.img")]);
  const isOwn = ownAddresses(network);
  const sockets = socketsOf(files);
  const connections: Connection[] = [];
  const next = sockets.values();
  const worker = async () => {
    for (const { connected } of next)
      if (connected !== undefined) connections.push(await withQueues(images, connected));
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, worker));
  const kept = surviving(connections, isOwn);
  const closed = connections.filter(({ inode }) => !kept.has(inode));
  const used = sockets
    .filter(({ inode, connected }) => connected === undefined || kept.has(inode))
    .map(({ bound }) => bound)
    .filter((one) => isOwn(one));
  await Promise.all([
    closed.length > 0 && writeFile(join(images, "files.img"), withClosed(files, inodesOf(closed))),
    writeFile(join(images, "inventory.img"), withoutClosing(inventory, kept.size > 0 ? LOCK : undefined)),
    ...closed.filter(({ queues }) => queues !== undefined).map(({ inode }) => unlink(streamOf(images, inode))),
  ]);
  const addresses = [...new Set([address, ...used])].slice(0, MOST_ADDRESSES);
  return { addresses, connections: kept.size > 0 };
}

async function withQueues(images: string, connection: Omit<Connection, "queues">): Promise<Connection> {
  const image = await readStart(streamOf(images, connection.inode));
  return { ...connection, queues: image === undefined ? undefined : queuesOf(image) };
}

/** Undefined when there is no such file. */
async function readStart(path: string): Promise<Buffer | undefined> {
  const file = await open(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  });
  if (file === undefined) return undefined;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(START_BYTES), 0, START_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

function streamOf(images: string, inode: number): string {
  return join(images, `tcp-stream-${inode.toString(16)}.img`);
}

function inodesOf(connections: readonly Connection[]): ReadonlySet<number> {
  return new Set(connections.map(({ inode }) => inode));
}

function ownAddresses({ subnet, gateway }: SandboxNetwork): (address: string) => boolean {
  const range = parseRange(subnet);
  return (address) => {
    const number = addressNumber(address);
    return (
      range !== undefined &&
      number !== undefined &&
      contains(range, number) &&
      address !== gateway &&
      !isLoopback(address)
    );
  };
}
