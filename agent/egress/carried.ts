/** A connection that is being carried, by the plain relay or by the part that reads and changes requests. */

import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";

export interface Bytes {
  /** Bytes from the sandbox. */
  readonly sent: number;
  /** Bytes to the sandbox. */
  readonly received: number;
}

interface Ended extends Bytes {
  /** The last request's failure in the words for the sandbox; holds no value of a placeholder. */
  readonly failed?: string;
}

export interface Carried {
  /** Never rejects. */
  readonly closed: Promise<Ended>;
  /** Ends both sides with an error. */
  destroy(): void;
}

/** Facts for rewrite/transform.ts about a connection whose requests it reads. */
export interface TransformOptions {
  /** Every request must be for this host. */
  readonly hostname: string;
  readonly port: number;
  /** Headers set on every request; none: requests are only checked for their host. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: boolean;
  /** Bytes that were read from the socket already. */
  readonly first: Buffer;
  /** Opens a connection to a checked address of the host, or through the egress proxy. */
  connect(): Promise<Socket>;
  /** The value for a placeholder at this moment. */
  resolve(placeholder: string): Promise<string | undefined>;
  readonly authority: { readonly certificate: string; readonly key: string };
  /** Certificates that the host may have. */
  readonly trust: SecureContext;
}

export type Transform = (socket: Socket, options: TransformOptions) => Carried;
