/** Decides which TCP connections of a dumped sandbox survive a restore: those whose two ends are in the dump. Pure. */

/** States of a socket as the kernel numbers them. */
export const STATE = {
  established: 1,
  synSent: 2,
  finWait1: 4,
  finWait2: 5,
  close: 7,
  closeWait: 8,
  lastAck: 9,
  listen: 10,
  closing: 11,
} as const;

/** A TCP socket of a dump that has a peer. */
export interface Connection {
  readonly inode: number;
  /** The network namespace, as the dump numbers it. */
  readonly namespace: number;
  readonly state: number;
  readonly from: Endpoint;
  readonly to: Endpoint;
  /** Undefined when the dump has no queues of it. */
  readonly queues: Queues | undefined;
}

interface Endpoint {
  /** IPv4 also when the socket is one of IPv6 with a mapped address. */
  readonly address: string;
  readonly port: number;
}

/** Sequence numbers modulo 2^32. */
export interface Queues {
  /** The next byte that is expected from the peer. */
  readonly expected: number;
  /** The byte after the last one in the send queue, an end of the stream included. */
  readonly sendEnd: number;
  /** Bytes in the send queue, without an end of the stream. */
  readonly sendLength: number;
}

/** The end of the stream is in the send queue, or was sent and is not acknowledged. */
const ENDS: ReadonlySet<number> = new Set([STATE.finWait1, STATE.lastAck, STATE.closing]);

/**
 * The inodes of connections that survive. A connection whose other end is not in the dump would wait for ever: the other
 * end is outside of the sandbox, nobody has accepted it yet, or its program has ended. Only one whose peer has ended its
 * stream lives on without it, because everything that it was sent is in its queue.
 */
export function surviving(
  connections: readonly Connection[],
  isOwn: (address: string) => boolean,
): ReadonlySet<number> {
  const byEnds = new Map(connections.map((one) => [ends(one.namespace, one.from, one.to), one]));
  const kept = connections.filter((one) => {
    if (one.queues === undefined || one.state === STATE.synSent || one.state === STATE.close) return false;
    if (!staysInside(one, isOwn)) return false;
    const peer = byEnds.get(ends(one.namespace, one.to, one.from));
    if (peer === undefined || peer === one) return one.state === STATE.closeWait;
    return (
      peer.queues !== undefined &&
      peer.state !== STATE.synSent &&
      fits(one.state, one.queues, peer.queues) &&
      fits(peer.state, peer.queues, one.queues)
    );
  });
  return new Set(kept.map(({ inode }) => inode));
}

export function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

function staysInside({ from, to }: Connection, isOwn: (address: string) => boolean): boolean {
  return [from, to].every(({ address }) => isLoopback(address) || isOwn(address));
}

function ends(namespace: number, from: Endpoint, to: Endpoint): string {
  return `${namespace} ${from.address} ${from.port} ${to.address} ${to.port}`;
}

/**
 * Whether the sender still has every byte that the receiver expects. The kernel may move bytes between the dumps of the
 * two ends, also while all programs are frozen; bytes that are in neither dump are lost.
 */
function fits(state: number, sender: Queues, receiver: Queues): boolean {
  const length = sender.sendLength + (ENDS.has(state) ? 1 : 0);
  const missing = (sender.sendEnd - receiver.expected) >>> 0;
  return missing <= length;
}
