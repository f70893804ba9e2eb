/**
 * The files in CRIU's images of a dump: finds TCP sockets, turns those that do not survive into closed ones, lets files of
 * volumes change, and names Unix sockets by their files. Pure.
 */

import { bytesField, type Field, fieldsOf, numberField } from "../criu/protobuf.ts";
import { type Connection, type Queues, STATE } from "./decide.ts";

/** Bytes before the first message: two magic numbers, in the inventory one. */
const HEAD = 8;
const INVENTORY_HEAD = 4;
const LENGTH = 4;
/** Numbers of the fields; see images/*.proto of CRIU. */
const FILE = { regular: 3, inet: 4, unix: 16 } as const;
const REGULAR = { name: 6, size: 8, mode: 10 } as const;
const INET = {
  inode: 2,
  family: 3,
  type: 4,
  protocol: 5,
  state: 6,
  fromPort: 7,
  toPort: 8,
  from: 11,
  to: 12,
  namespace: 18,
  shutdown: 19,
} as const;
const UNIX = { inode: 2, name: 11, directory: 14, deleted: 15 } as const;
const STREAM = { expected: 2, sendLength: 3, sendEnd: 4 } as const;
const INVENTORY = { closes: 10, lock: 11, run: 13 } as const;
const TCP = 6;
const STREAM_SOCKET = 1;
const IPV6 = 10;
/** Of `shutdown`: nothing is to be received or sent any more. */
const BOTH = 3;
/** Of `network_lock_method`. */
const NFTABLES = 1;
const SKIP = 2;

/** The name by which a restore binds a Unix socket. Any bytes, without a zero at the end. */
export interface SocketName {
  /** In which the name counts; empty for a name that begins with a slash. */
  readonly directory: Buffer;
  readonly name: Buffer;
}

/** An internet socket of a dump, of any protocol. */
interface DumpedSocket {
  readonly inode: number;
  readonly namespace: number;
  /** Undefined unless it is a TCP socket with a peer. */
  readonly connected: Omit<Connection, "queues"> | undefined;
  /** The address that it is bound to. */
  readonly bound: string;
}

/** @throws {Error} if the image is damaged */
export function socketsOf(files: Buffer): DumpedSocket[] {
  return messagesOf(files, HEAD).flatMap((message) => {
    const inet = fieldsOf(message).find(({ number }) => number === FILE.inet);
    return inet === undefined ? [] : [socketOf(fieldsOf(inet.content))];
  });
}

/** The image with these sockets as ones that are shut down without a peer, which is how CRIU restores them after `tcp-close`. */
export function withClosed(files: Buffer, closed: ReadonlySet<number>): Buffer {
  const parts = messagesOf(files, HEAD).map((message) => {
    const fields = fieldsOf(message);
    return framed(
      Buffer.concat(fields.map((field) => (field.number === FILE.inet ? inetWithClosed(field, closed) : field.whole))),
    );
  });
  return Buffer.concat([files.subarray(0, HEAD), ...parts]);
}

/**
 * The image without the sizes and modes of regular files at or below these paths, which CRIU compares when it opens the files:
 * others may change them while the sandbox is stored.
 */
export function withoutSizes(files: Buffer, paths: readonly string[]): Buffer {
  const isBelow = (name: string) => paths.some((path) => name === path || name.startsWith(`${path}/`));
  const parts = messagesOf(files, HEAD).map((message) => {
    const changed = fieldsOf(message).map((field) => {
      const regular = field.number === FILE.regular ? fieldsOf(field.content) : [];
      const name = regular.find(({ number }) => number === REGULAR.name)?.content.toString() ?? "";
      if (!isBelow(name.replace(/^\./, ""))) return field.whole;
      const kept = regular.filter(({ number }) => number !== REGULAR.size && number !== REGULAR.mode);
      return bytesField(FILE.regular, Buffer.concat(kept.map(({ whole }) => whole)));
    });
    return framed(Buffer.concat(changed));
  });
  return Buffer.concat([files.subarray(0, HEAD), ...parts]);
}

/** The image with other names of some bound Unix sockets. @param names by the inode of the socket */
export function withSocketNames(files: Buffer, names: ReadonlyMap<number, SocketName>): Buffer {
  const parts = messagesOf(files, HEAD).map((message) => {
    const changed = fieldsOf(message).map((field) =>
      field.number === FILE.unix ? unixWithName(field, names) : field.whole,
    );
    return framed(Buffer.concat(changed));
  });
  return Buffer.concat([files.subarray(0, HEAD), ...parts]);
}

/** @param image of a single connection: `tcp-stream-<inode>.img` */
export function queuesOf(image: Buffer): Queues {
  const fields = fieldsOf(messageAt(image, HEAD));
  const number = (wanted: number) => numberOf(fields, wanted);
  return {
    expected: number(STREAM.expected),
    sendEnd: number(STREAM.sendEnd),
    sendLength: number(STREAM.sendLength),
  };
}

/**
 * The inventory of a dump whose images have no connection that the restore must close. `lock`: the restore ends with the
 * removal of the network lock of this name.
 */
export function withoutClosing(inventory: Buffer, lock: string | undefined): Buffer {
  const fields = fieldsOf(messageAt(inventory, INVENTORY_HEAD));
  const changed: ReadonlySet<number> = new Set([INVENTORY.closes, INVENTORY.lock, INVENTORY.run]);
  const kept = fields.filter(({ number }) => !changed.has(number)).map(({ whole }) => whole);
  const locked = [numberField(INVENTORY.lock, NFTABLES), bytesField(INVENTORY.run, Buffer.from(lock ?? ""))];
  const message = [...kept, ...(lock === undefined ? [numberField(INVENTORY.lock, SKIP)] : locked)];
  return Buffer.concat([inventory.subarray(0, INVENTORY_HEAD), framed(Buffer.concat(message))]);
}

function socketOf(fields: readonly Field[]): DumpedSocket {
  const number = (wanted: number) => numberOf(fields, wanted);
  const address = (wanted: number) =>
    addressOf(
      fields.filter((field) => field.number === wanted).map(({ value }) => value),
      number(INET.family) === IPV6,
    );
  const [inode, namespace, bound] = [number(INET.inode), number(INET.namespace), address(INET.from)];
  const isConnected = number(INET.protocol) === TCP && number(INET.type) === STREAM_SOCKET && number(INET.toPort) !== 0;
  return {
    inode,
    namespace,
    bound,
    connected: isConnected
      ? {
          inode,
          namespace,
          state: number(INET.state),
          from: { address: bound, port: number(INET.fromPort) },
          to: { address: address(INET.to), port: number(INET.toPort) },
        }
      : undefined,
  };
}

function inetWithClosed(field: Field, closed: ReadonlySet<number>): Buffer {
  const fields = fieldsOf(field.content);
  const { inode, connected } = socketOf(fields);
  if (connected === undefined || !closed.has(inode)) return field.whole;
  const fresh = new Map<number, number>([
    [INET.state, STATE.close],
    [INET.fromPort, 0],
    [INET.toPort, 0],
  ]);
  const changed = fields
    .filter(({ number }) => number !== INET.shutdown)
    .map(({ number, whole }) => {
      const value = fresh.get(number);
      return value === undefined ? whole : numberField(number, value);
    });
  return bytesField(FILE.inet, Buffer.concat([...changed, numberField(INET.shutdown, BOTH)]));
}

function unixWithName(field: Field, names: ReadonlyMap<number, SocketName>): Buffer {
  const fields = fieldsOf(field.content);
  const found = names.get(numberOf(fields, UNIX.inode));
  if (found === undefined) return field.whole;
  const replaced: ReadonlySet<number> = new Set([UNIX.name, UNIX.directory, UNIX.deleted]);
  const kept = fields.filter(({ number }) => !replaced.has(number)).map(({ whole }) => whole);
  // CRIU reads the name up to its zero.
  const name = bytesField(UNIX.name, Buffer.concat([found.name, Buffer.alloc(1)]));
  const directory = found.directory.length === 0 ? [] : [bytesField(UNIX.directory, found.directory)];
  return bytesField(FILE.unix, Buffer.concat([...kept, name, ...directory]));
}

function numberOf(fields: readonly Field[], wanted: number): number {
  return fields.find(({ number }) => number === wanted)?.value ?? 0;
}

/** @param words of an address in network order, as the little-endian machine that dumped it reads them */
function addressOf(words: readonly number[], isIpv6: boolean): string {
  const bytes = words.flatMap((word) => [word & 0xff, (word >>> 8) & 0xff, (word >>> 16) & 0xff, word >>> 24]);
  if (!isIpv6) return bytes.slice(0, 4).join(".");
  const text = Buffer.from(bytes).toString("hex");
  if (text.startsWith("00000000000000000000ffff")) return bytes.slice(12).join(".");
  return text === `${"0".repeat(31)}1` ? "::1" : text;
}

function messagesOf(image: Buffer, head: number): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = head; at < image.length; at += LENGTH + (messages.at(-1)?.length ?? 0))
    messages.push(messageAt(image, at));
  return messages;
}

function messageAt(image: Buffer, at: number): Buffer {
  const length = at + LENGTH <= image.length ? image.readUInt32LE(at) : Number.NaN;
  const message = image.subarray(at + LENGTH, at + LENGTH + length);
  if (message.length !== length) throw new Error("a memory image is cut off");
  return message;
}

function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH);
  length.writeUInt32LE(message.length);
  return Buffer.concat([length, message]);
}
