/** A key that signs workload identity tokens. */
export interface IdentityKeyRow {
  /** From 1: the order in which the keys were made, and what keeps two callers from making the same successor. */
  readonly sequence: number;
  /** Thumbprint of the public key (RFC 7638). */
  readonly kid: string;
  readonly algorithm: "ES256" | "EdDSA";
  /** JSON Web Key. */
  readonly public_key: string;
  /** JSON Web Key, sealed; null once the key signs no more. */
  readonly private_key: string | null;
  readonly created_at: number;
  /** The key signs from this time until its successor's. */
  readonly signs_from: number;
  /** The longest lifetime of tokens while it could sign, ms. */
  readonly token_ms: number;
}
