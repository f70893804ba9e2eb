/** A connection on its way, whoever carries it: the plain relay, or the one that reads and changes requests. */

import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";

export interface Bytes {
  /** From the sandbox. */
  readonly sent: number;
  /** To the sandbox. */
  readonly received: number;
}

interface Ended extends Bytes {
  /** Why the last request failed, as the sandbox was told; holds no value of a placeholder. */
  readonly failed?: string;
}

export interface Carried {
  /** Never rejects. */
  readonly closed: Promise<Ended>;
  /** Both sides at once, as an error. */
  destroy(): void;
}

/** What transform/transform.ts is told of a connection whose requests it reads one by one. */
export interface TransformOptions {
  /** Every request must be for this host. */
  readonly hostname: string;
  readonly port: number;
  /** Set on every request; none: the requests are only held to their host. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: boolean;
  /** Read from the socket already. */
  readonly first: Buffer;
  /** A connection to a checked address of the host, or through the egress proxy. */
  connect(): Promise<Socket>;
  /** The value for a placeholder at this moment. */
  resolve(placeholder: string): Promise<string | undefined>;
  readonly authority: { readonly certificate: string; readonly key: string };
  /** Which certificates of the host are believed. */
  readonly trust: SecureContext;
}

export type Transform = (socket: Socket, options: TransformOptions) => Carried;
