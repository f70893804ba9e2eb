/** Installs more certificate authorities in the sandbox: in the image's bundles, and beside them. */

import { chmod, mkdir, readFile, readlink, realpath, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { posix } from "node:path";
import { errnoOf } from "../system/errno.ts";
import { subjectHash } from "./subject-hash.ts";

/** Where the distributions keep the bundle: Debian and Alpine, Fedora and its kin, old Red Hat, SUSE, plain OpenSSL. */
const BUNDLES = [
  "etc/ssl/certs/ca-certificates.crt",
  "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "etc/pki/tls/certs/ca-bundle.crt",
  "etc/ssl/ca-bundle.pem",
  "etc/ssl/cert.pem",
] as const;
/**
 * update-ca-certificates finds the authorities here, so that installing packages does not lose them. One for each file,
 * because OpenSSL's directory of hashes ignores a file with several.
 */
const ANCHORS = "usr/local/share/ca-certificates";
/** All of them, for programs that read the path from a variable. */
export const CA_FILE = "run/svc/ca.pem";
/** OpenSSL without a bundle (Debian's Python) looks here, by the hash of the name; links as update-ca-certificates makes them. */
const HASHED = "etc/ssl/certs";
const MOST_ALIKE = 10;
/** More than the agent sends: what a program inside has added after the platform's own is not looked at. */
const MOST_CERTIFICATES = 200;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

const BEGIN = "# svc: begin";
const END = "# svc: end";

/** Pure: the bundle with these certificates once, at its end, and no other of ours. @param before what was installed last */
export function withCertificates(bundle: string, pem: string, before = ""): string {
  const cleaned = withoutCertificates(bundle, certificatesIn(before));
  // update-ca-certificates has added the others, without our marks.
  const missing = certificatesIn(pem).filter((certificate) => !cleaned.includes(certificate));
  if (missing.length === 0) return cleaned;
  const separator = cleaned === "" || cleaned.endsWith("\n") ? "" : "\n";
  return `${cleaned}${separator}${BEGIN}\n${missing.join("\n")}\n${END}\n`;
}

function withoutCertificates(bundle: string, before: readonly string[]): string {
  const start = bundle.indexOf(`${BEGIN}\n`);
  const end = bundle.indexOf(`${END}\n`, start);
  const unmarked = start < 0 || end < 0 ? bundle : bundle.slice(0, start) + bundle.slice(end + END.length + 1);
  return before.reduce((text, certificate) => text.replaceAll(`${certificate}\n`, ""), unmarked);
}

/** Each certificate of the text once, without what stands between them. */
function certificatesIn(pem: string): readonly string[] {
  return [...new Set(pem.match(CERTIFICATE) ?? [])];
}

/**
 * Idempotent. An empty PEM removes the authorities; when none is installed, that costs two look-ups.
 * @param root `/` outside of tests
 * @returns variables for programs that ignore the system's certificates; they name files that only root can write
 */
export async function installCertificates(root: string, pem: string): Promise<Readonly<Record<string, string>>> {
  const at = (path: string) => posix.join(root, path);
  const wanted = certificatesIn(pem);
  const before = await installed(at);
  if (wanted.length === 0 && before.length === 0) return {};
  const present: string[] = [];
  for (const bundle of BUNDLES) if (await rewrite(at(bundle), pem, before.join("\n"))) present.push(bundle);
  for (const [index, certificate] of before.entries())
    if (certificate !== wanted[index]) await removeAnchor(at, index, certificate);
  if (wanted.length === 0) {
    await rm(at(CA_FILE), { force: true });
    return {};
  }
  const [first] = BUNDLES;
  // An image without any authority trusts none; now it trusts these.
  if (present.length === 0) await replace(at(first), withCertificates("", pem), 0o644);
  await replace(at(CA_FILE), `${wanted.join("\n")}\n`, 0o644);
  for (const [index, certificate] of wanted.entries()) {
    await replace(at(anchorOf(index)), `${certificate}\n`, 0o644);
    await linkHash(at(HASHED), index, certificate);
  }
  const bundle = `/${present[0] ?? first}`;
  // Node adds its file to its own list; other programs need all authorities in one file.
  return { NODE_EXTRA_CA_CERTS: `/${CA_FILE}`, SSL_CERT_FILE: bundle, REQUESTS_CA_BUNDLE: bundle };
}

/** What was installed last, in its order, as its anchors say; a program inside may have changed them. */
async function installed(at: (path: string) => string): Promise<readonly string[]> {
  const found: string[] = [];
  while (found.length < MOST_CERTIFICATES) {
    const text = await readIfThere(at(anchorOf(found.length)));
    if (text === undefined) break;
    found.push(certificatesIn(text)[0] ?? text.trim());
  }
  return found.length > 0 ? found : certificatesIn((await readIfThere(at(CA_FILE))) ?? "");
}

function anchorOf(index: number): string {
  return `${ANCHORS}/${nameOf(index)}.crt`;
}

function linkOf(index: number): string {
  return `${nameOf(index)}.pem`;
}

function nameOf(index: number): string {
  return index === 0 ? "svc-ca" : `svc-ca-${index + 1}`;
}

async function removeAnchor(at: (path: string) => string, index: number, certificate: string): Promise<void> {
  await unlinkHash(at(HASHED), index, certificate);
  await rm(at(anchorOf(index)), { force: true });
}

async function rewrite(path: string, pem: string, before: string): Promise<boolean> {
  const text = await readIfThere(path);
  if (text === undefined) return false;
  const after = withCertificates(text, pem, before);
  // Writes the file behind a link, so that several names of one file still name one file.
  const real = await realpath(path);
  if (after !== text) await replace(real, after, (await stat(real)).mode & 0o755);
  return true;
}

async function linkHash(directory: string, index: number, certificate: string): Promise<void> {
  const hash = subjectHash(certificate);
  if (hash === undefined) return;
  const link = linkOf(index);
  await symlink(`/${anchorOf(index)}`, posix.join(directory, link)).catch(unlessThere);
  for (let n = 0; n < MOST_ALIKE; n += 1) {
    const path = posix.join(directory, `${hash}.${n}`);
    const target = await readlink(path).catch(() => undefined);
    if (target === link) return;
    if (target !== undefined) continue;
    await symlink(link, path).catch(unlessThere);
    return;
  }
}

async function unlinkHash(directory: string, index: number, certificate: string): Promise<void> {
  // Without a hash this product made no link.
  const hash = subjectHash(certificate);
  const link = linkOf(index);
  for (let n = 0; n < MOST_ALIKE; n += 1) {
    const path = posix.join(directory, `${hash}.${n}`);
    if ((await readlink(path).catch(() => undefined)) === link) await rm(path, { force: true });
  }
  await rm(posix.join(directory, link), { force: true });
}

function unlessThere(error: unknown): void {
  if (errnoOf(error) !== "EEXIST") throw error;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

// Programs may read it at this moment: they see the old file or the new one.
async function replace(path: string, text: string, mode: number): Promise<void> {
  await mkdir(posix.dirname(path), { recursive: true, mode: 0o755 });
  const beside = `${path}.svc-new`;
  await writeFile(beside, text, { mode });
  await chmod(beside, mode);
  await rename(beside, path);
}
