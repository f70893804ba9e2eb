/** Why another machine was not reached, in words that name what to look at. Pure. */

const SYSTEM: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens at {address}",
  ECONNRESET: "the connection to {address} was cut",
  ETIMEDOUT: "no packet comes back from {address}: open its port in the firewalls between the machines",
  UND_ERR_CONNECT_TIMEOUT: "no packet comes back from {address}: open its port in the firewalls between the machines",
  EHOSTUNREACH: "the network knows no way to {address}: look at the routes and firewalls between the machines",
  ENETUNREACH: "this machine has no network that leads to {address}",
  ENOTFOUND: "no resolver of this machine knows the name in {address}",
  EAI_AGAIN: "this machine's resolver does not answer for the name in {address}",
};

const STRANGE_AUTHORITY = "the certificate at {address} is of another authority than the platform's";
const NOT_TLS = "what listens at {address} does not speak TLS";
const EXPIRED =
  "{address} says that this machine's certificate has ended: set the clocks of both machines (timedatectl set-ntp true); if they are right, join the platform again";
const NOT_KNOWN =
  "{address} does not take this machine's certificate: it is of another authority, or another program's";

const TLS: Readonly<Record<string, string>> = {
  CERT_NOT_YET_VALID:
    "the certificate at {address} is not valid yet by this machine's clock: set the clocks of both machines (timedatectl set-ntp true)",
  CERT_HAS_EXPIRED:
    "the certificate at {address} has ended by this machine's clock: set the clocks of both machines (timedatectl set-ntp true); if they are right, that machine has not renewed it",
  DEPTH_ZERO_SELF_SIGNED_CERT: STRANGE_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: STRANGE_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: STRANGE_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: STRANGE_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: STRANGE_AUTHORITY,
  CERT_SIGNATURE_FAILURE: STRANGE_AUTHORITY,
  ERR_SSL_WRONG_VERSION_NUMBER: NOT_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NOT_TLS,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    "{address} asks for a certificate of the platform, and this machine has none: join the platform with it",
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: NOT_KNOWN,
  ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR: NOT_KNOWN,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: EXPIRED,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: NOT_KNOWN,
  // As OpenSSL names them from 3.2 on.
  "ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED": EXPIRED,
  "ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE": NOT_KNOWN,
};

/**
 * One sentence without a full stop; undefined: the error says nothing about the way to the other machine.
 * @param address as people write it, with the port
 */
export function reachFailure(error: unknown, address: string): string | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++) {
    const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
    if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return otherPeer(cause, address);
    const text = SYSTEM[code] ?? TLS[code];
    if (text !== undefined) return text.replace("{address}", address);
  }
  return undefined;
}

function otherPeer(error: Error, address: string): string {
  if (!("found" in error && "expects" in error)) {
    return `the certificate at ${address} is not for this host name`;
  }
  return `another machine answers at ${address}: its certificate is of ${String(error.found)}, not of ${String(error.expects)}`;
}
