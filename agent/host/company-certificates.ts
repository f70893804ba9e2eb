/** Reads the certificates that the operator gives to every sandbox of this node: a PEM file, checked as a whole. */

import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";

const LARGEST_BYTES = 1024 * 1024;
const MOST_CERTIFICATES = 100;
const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;

/**
 * The certificates of the file and nothing else of it, one after the other.
 * @throws {Error} that names the file, for one that cannot be read or would not do what the operator means
 */
export function readCompanyCertificates(path: string): string {
  const wrong = (why: string) => new Error(`${path} ${why}`);
  const text = read(path, wrong);
  const blocks = [...text.matchAll(BLOCK)];
  // Every sandbox could read it.
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) throw wrong("holds a private key, which sandboxes would get");
  if (blocks.length !== (text.match(/-----BEGIN /g) ?? []).length) throw wrong("has a block without its end");
  const other = blocks.find(([, label]) => label !== "CERTIFICATE");
  if (other !== undefined) throw wrong(`holds a block "${other[1]}" beside certificates`);
  if (blocks.length === 0) throw wrong("holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
  if (blocks.length > MOST_CERTIFICATES) throw wrong(`holds more than ${MOST_CERTIFICATES} certificates`);
  const certificates = blocks.map(([pem], index) => {
    const which = `certificate ${index + 1} of ${blocks.length}`;
    const certificate = parsed(pem);
    if (certificate === undefined) throw wrong(`is damaged: ${which} cannot be read`);
    if (!certificate.ca) throw wrong(`holds a certificate that is no authority: ${which}, ${nameOf(certificate)}`);
    if (Date.parse(certificate.validTo) < Date.now())
      throw wrong(`holds a certificate that ended on ${certificate.validTo}: ${which}, ${nameOf(certificate)}`);
    // OpenSSL's own spelling: lines of 64 characters, which every program inside reads.
    return certificate.toString().trim();
  });
  return `${[...new Set(certificates)].join("\n")}\n`;
}

function read(path: string, wrong: (why: string) => Error): string {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw wrong("is not a file");
    if (stats.size > LARGEST_BYTES) throw wrong(`is larger than ${LARGEST_BYTES} bytes`);
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw code === undefined ? error : wrong(`cannot be read (${code})`);
  }
}

function parsed(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function nameOf({ subject }: X509Certificate): string {
  return subject.replaceAll("\n", ", ");
}
