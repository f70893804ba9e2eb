/** Whether a certificate and its key serve `https://api.DOMAIN` and `https://PORT-ID.DOMAIN`, and until when. No I/O. */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, rootCertificates } from "node:tls";
import { type Finding, findingText } from "../../program/finding.ts";

const DAY_MS = 86_400_000;
/** Whoever renews has done it earlier: certbot when a third of the time is left, which is 30 days of 90. */
const WARNS_MS = 14 * DAY_MS;
/** Any name of a sandbox: only a certificate for all of them has it. */
const OF_A_SANDBOX = "49983-iany";

export interface SitePair {
  /** The certificate, and behind it those of the authorities between it and the root; PEM. */
  readonly certificate: string;
  readonly key: string;
}

export interface SiteFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** The host of a domain that may carry a port. */
export function hostOfDomain(domain: string): string {
  return domain.replace(/:\d+$/, "").toLowerCase();
}

/** Why the pair cannot be shown at all; undefined: it can. */
export function unusable({ certificate, key }: SitePair, { certFile, keyFile }: SiteFiles): Finding | undefined {
  const found = (problem: string, evidence: string, wayOut: string): Finding => ({
    id: "certificates.files",
    problem,
    evidence,
    wayOut,
  });
  let read: X509Certificate;
  try {
    read = new X509Certificate(certificate);
  } catch {
    return found(
      "the certificate cannot be read",
      certFile,
      "the file is PEM and begins with the site's own certificate",
    );
  }
  try {
    if (!read.checkPrivateKey(createPrivateKey(key))) {
      return found(
        "the key is not that of the certificate",
        `${keyFile} and ${certFile}`,
        "put both files of one issue in place; the program reads them again by itself",
      );
    }
    createSecureContext({ cert: certificate, key });
  } catch {
    return found(
      "the key or the chain cannot be read",
      `${keyFile} and ${certFile}`,
      "both files are PEM, and the key has no passphrase",
    );
  }
  return undefined;
}

/** What is wrong with a pair that can be shown: clients, or some of them, refuse it now or soon. */
export function problemsOf(
  { certificate }: SitePair,
  { certFile, domain, at }: { readonly certFile: string; readonly domain: string; readonly at: number },
): readonly Finding[] {
  const read = new X509Certificate(certificate);
  const host = hostOfDomain(domain);
  return [nameProblem(read, host), chainProblem(certificate, read, certFile), dateProblem(read, certFile, at)].filter(
    (finding) => finding !== undefined,
  );
}

/** In the words of a check of readiness. A program serves with a bad certificate too: who reaches it otherwise must not lose it. */
export function stateOf(findings: readonly Finding[]): string {
  return findings.length === 0 ? "ok" : `ok, except that ${findings.map(findingText).join("; ")}`;
}

/** Unix milliseconds. */
export function endOf({ certificate }: SitePair): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

function nameProblem(read: X509Certificate, host: string): Finding | undefined {
  const missing = [`api.${host}`, `${OF_A_SANDBOX}.${host}`].filter((name) => read.checkHost(name) === undefined);
  if (missing.length === 0) return undefined;
  return {
    id: "certificates.names",
    problem: `the certificate is not for every name below ${host}`,
    evidence: `it has ${read.subjectAltName ?? "no names"}`,
    wayOut: `get one for *.${host}: clients call the API at api.${host} and each sandbox at a name of its own`,
  };
}

function chainProblem(certificate: string, read: X509Certificate, certFile: string): Finding | undefined {
  const certificates = certificate.split("-----BEGIN CERTIFICATE-----").length - 1;
  if (certificates > 1 || read.issuer === read.subject || isRoot(read.issuer)) return undefined;
  return {
    id: "certificates.chain",
    problem: "the file has the certificate without its chain, so most clients do not trust it",
    evidence: `${certFile} has one certificate, signed by ${read.issuer.replaceAll("\n", ", ")}`,
    wayOut: "SVC_TLS_CERT_FILE is the file with the whole chain: fullchain.pem of certbot",
  };
}

function isRoot(issuer: string): boolean {
  return rootCertificates.some((root) => new X509Certificate(root).subject === issuer);
}

function dateProblem(read: X509Certificate, certFile: string, at: number): Finding | undefined {
  const [from, until] = [Date.parse(read.validFrom), Date.parse(read.validTo)];
  const evidence = `${certFile} is valid from ${new Date(from).toISOString()} to ${new Date(until).toISOString()}`;
  const found = (problem: string, wayOut: string): Finding => ({
    id: "certificates.expiry",
    problem,
    evidence,
    wayOut,
  });
  const renew =
    "renew it (certbot renew, or ./scripts/up where it is the platform's own); the new files are read by themselves";
  if (at < from)
    return found("the certificate is not valid yet", "set this machine's clock, or use the certificate later");
  if (at > until) return found("the certificate has expired, so clients refuse it", renew);
  if (until - at > Math.min(WARNS_MS, (until - from) / 4)) return undefined;
  return found(`the certificate expires in ${Math.max(1, Math.round((until - at) / DAY_MS))} days`, renew);
}
