/** A connection that is being carried, by the plain relay or by the part that reads and changes requests. */

import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import type { CertificateWithKey, PlaceholderAnswer } from "../channel/messages.ts";

export interface Bytes {
  /** Bytes from the sandbox. */
  readonly sent: number;
  /** Bytes to the sandbox. */
  readonly received: number;
}

export interface CarriedResult extends Bytes {
  /** The last request's failure in the words for the sandbox; holds no value of a placeholder. */
  readonly failed?: string;
}

export interface Carried {
  /** Never rejects. */
  readonly closed: Promise<CarriedResult>;
  /** Ends both sides with an error. */
  destroy(): void;
}

/** Facts for rewrite/transform.ts about a connection whose requests it reads. */
export interface TransformOptions {
  /** Every request must be for this host, as `hostName` spells it. */
  readonly hostname: string;
  readonly port: number;
  readonly tls: boolean;
  /** Headers of the rule, set on every request; none: requests are only checked for their host. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether values of placeholders may be sent without TLS. */
  readonly allowPlainHttp?: boolean;
  /** Set: `connect` leads to an HTTP proxy, which gets requests with whole addresses and this `Proxy-Authorization`. */
  readonly proxied?: { readonly authorization?: string };
  /** Each answer closes the connection: the client may have its next request for another host. */
  readonly once?: boolean;
  /** Bytes that were read from the socket already. */
  readonly first: Buffer;
  /** Opens a connection to a checked address of the host, or through the egress proxy; again after the last one closed. */
  connect(): Promise<Socket>;
  /** The value for a placeholder at this moment. */
  readonly resolve: (placeholder: string) => Promise<PlaceholderAnswer>;
  /** The same object each time: its leaf certificates are cached. */
  readonly authority: CertificateWithKey;
  /** Certificates that the host may have. */
  readonly trust: SecureContext;
}

export type Transform = (socket: Socket, options: TransformOptions) => Carried;
