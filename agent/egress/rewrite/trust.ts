/** Certificate authorities for destinations: the machine's, and those that its operator adds. */

import { readFileSync } from "node:fs";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";

/** Debian and Alpine, Fedora and its kin, SUSE, plain OpenSSL. */
const BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** @param extra PEM; text without a certificate adds nothing */
function makeTrust(extra: string): SecureContext {
  const system = BUNDLES.map(read).find((text) => text !== undefined);
  const ca = [...(system === undefined ? rootCertificates : [system]), ...(holdsCertificates(extra) ? [extra] : [])];
  return createSecureContext({ ca, minVersion: "TLSv1.2" });
}

function read(path: string): string | undefined {
  try {
    const text = readFileSync(path, "utf8");
    return holdsCertificates(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

function holdsCertificates(text: string): boolean {
  return text.includes("BEGIN CERTIFICATE");
}

/** Made once, on first use: a hundred certificates take some milliseconds. */
export function openTrust(extra: string): () => SecureContext {
  const made: { trust?: SecureContext } = {};
  return () => (made.trust ??= makeTrust(extra));
}
