/** Which certificates of destinations are believed: the machine's, and those of `NODE_EXTRA_CA_CERTS`. */

import { readFileSync } from "node:fs";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";

/** Debian and Alpine, Fedora and its kin, SUSE, plain OpenSSL. */
const BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

function makeTrust(): SecureContext {
  const system = BUNDLES.map(read).find((text) => text !== undefined);
  // Node adds these to its own list only, which is not used where the machine has one.
  // oxlint-disable-next-line node/no-process-env -- the name is Node's, not one of our settings
  const extra = read(process.env["NODE_EXTRA_CA_CERTS"] ?? "");
  const ca = [...(system === undefined ? rootCertificates : [system]), ...(extra === undefined ? [] : [extra])];
  return createSecureContext({ ca, minVersion: "TLSv1.2" });
}

function read(path: string): string | undefined {
  try {
    const text = readFileSync(path, "utf8");
    return text.includes("BEGIN CERTIFICATE") ? text : undefined;
  } catch {
    return undefined;
  }
}

const made: { trust?: SecureContext } = {};

/** Read once, on first use: a hundred certificates take some milliseconds. */
export function systemTrust(): SecureContext {
  made.trust ??= makeTrust();
  return made.trust;
}
