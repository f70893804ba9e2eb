/**
 * A connection within the program: what one end writes the other reads, with back-pressure. The far end has what HTTP servers use of
 * a client's socket, so that they serve a stream of HTTP/2 like a connection of its own.
 */

import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** Whom the connection is from. */
export interface Origin {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
}

type Done = (error?: Error | null) => void;

/** @returns the end for a client, and the end for a server */
export function innerConnection(origin: Origin): { readonly near: Duplex; readonly far: Socket } {
  const near = new InnerSocket(origin);
  const far = new InnerSocket(origin);
  near.joins(far);
  far.joins(near);
  // A server takes any duplex stream; the rest of a socket's surface that ours use is below.
  return { near, far: far as unknown as Socket };
}

class InnerSocket extends Duplex {
  /** The client's connection has TLS, which `request.protocol` tells from this. */
  readonly encrypted = true;
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
  #peer: InnerSocket | undefined;
  /** Lets the peer write on, when what it wrote has been read. */
  #taken: Done | undefined;
  #hasEnd = false;
  #idleMs = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor({ remoteAddress, remotePort, localAddress, localPort }: Origin) {
    super({ allowHalfOpen: true });
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
    this.localAddress = localAddress;
    this.localPort = localPort;
  }

  joins(peer: InnerSocket): void {
    this.#peer = peer;
  }

  override _read(): void {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#moved();
    if (this.#peer === undefined || this.#peer.destroyed) done(broken("EPIPE"));
    else this.#peer.#take(chunk, done);
  }

  override _final(done: Done): void {
    this.#peer?.reachEnd();
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    clearTimeout(this.#idle);
    this.#taken?.(broken("EPIPE"));
    this.#taken = undefined;
    this.#peer?.reachEnd();
    done(error);
  }

  #take(chunk: Buffer, done: Done): void {
    this.#moved();
    if (this.push(chunk)) done();
    else this.#taken = done;
  }

  /** The peer writes no more. */
  reachEnd(): void {
    if (this.#hasEnd || this.destroyed) return;
    this.#hasEnd = true;
    this.push(null);
  }

  /** As `net.Socket` does: what is left is sent, and then the connection closes. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  resetAndDestroy(): this {
    this.#peer?.destroy(broken("ECONNRESET"));
    return this.destroy();
  }

  setTimeout(ms: number, listener?: () => void): this {
    this.#idleMs = ms;
    if (listener !== undefined) this.once("timeout", listener);
    clearTimeout(this.#idle);
    this.#idle = ms > 0 && !this.destroyed ? setTimeout(() => this.emit("timeout"), ms).unref() : undefined;
    return this;
  }

  #moved(): void {
    if (this.#idleMs > 0) this.#idle?.refresh();
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

function broken(code: "EPIPE" | "ECONNRESET"): Error {
  return Object.assign(new Error(code === "EPIPE" ? "the other end is closed" : "the other end was reset"), { code });
}
