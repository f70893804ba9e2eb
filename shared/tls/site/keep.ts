/** Keeps the platform's own authority for a domain and a certificate of it in a directory: makes what is missing, renews what ends. */

import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../../program/config.ts";
import type { CertificateWithKey } from "../x509.ts";
import { hostOfDomain, unusable } from "./certificate.ts";
import { issueForSite, makeSiteAuthority } from "./own-authority.ts";

export interface KeptSite {
  /** What happened to the certificate. */
  readonly is: "made" | "renewed" | "as before";
  readonly until: number;
}

/** @throws {ConfigError} the directory belongs to another domain */
export async function keepSite(directory: string, domain: string, at: number): Promise<KeptSite> {
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  const place = (name: string) => join(directory, name);
  const [authorityFiles, files] = [
    { certFile: place("authority.pem"), keyFile: place("authority.key") },
    { certFile: place("cert.pem"), keyFile: place("key.pem") },
  ];
  const host = hostOfDomain(domain);
  if (!existsSync(authorityFiles.certFile)) write(authorityFiles, await makeSiteAuthority(domain, at));
  const authority = read(authorityFiles);
  const known = new X509Certificate(authority.certificate).subject;
  if (known !== `CN=${`svc ${host}`.slice(0, 64)}`) {
    throw new ConfigError([
      `${authorityFiles.certFile} is the authority of another domain (${known}): clients that trust it would not trust ${host}; move ${directory} away to make a new one`,
    ]);
  }
  const before = existsSync(files.certFile) && existsSync(files.keyFile) ? read(files) : undefined;
  if (before !== undefined && unusable(before, files) === undefined && !isDue(before, authority, at)) {
    return { is: "as before", until: endOf(before) };
  }
  const next = await issueForSite(authority, domain, at);
  write(files, next);
  return { is: before === undefined ? "made" : "renewed", until: endOf(next) };
}

/** When a third of its time is left, or another authority has signed it. */
function isDue({ certificate }: CertificateWithKey, authority: CertificateWithKey, at: number): boolean {
  const read = new X509Certificate(certificate);
  const [from, until] = [Date.parse(read.validFrom), Date.parse(read.validTo)];
  return until - at < (until - from) / 3 || !read.verify(new X509Certificate(authority.certificate).publicKey);
}

function endOf({ certificate }: CertificateWithKey): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

interface Files {
  readonly certFile: string;
  readonly keyFile: string;
}

function read({ certFile, keyFile }: Files): CertificateWithKey {
  return { certificate: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
}

/** The key first: without it the certificate is of no use, and makes the pair be made again. */
function write({ certFile, keyFile }: Files, { certificate, key }: CertificateWithKey): void {
  for (const [file, text, mode] of [
    [keyFile, key, 0o600],
    [certFile, certificate, 0o644],
  ] as const) {
    writeFileSync(`${file}.new`, text, { mode });
    renameSync(`${file}.new`, file);
  }
}
