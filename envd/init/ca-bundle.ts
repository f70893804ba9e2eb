/** Installs one more certificate authority in the sandbox: in the image's bundles, and beside them. */

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
/** update-ca-certificates finds the authority here, so that installing packages does not lose it. */
const ANCHOR = "usr/local/share/ca-certificates/svc-ca.crt";
/** For programs that read the path from a variable. */
export const CA_FILE = "run/svc/ca.pem";
/** OpenSSL without a bundle (Debian's Python) looks here, by the hash of the name; links as update-ca-certificates makes them. */
const HASHED = "etc/ssl/certs";
const LINK = "svc-ca.pem";
const MOST_ALIKE = 10;

const BEGIN = "# svc: begin";
const END = "# svc: end";

/** Pure: the bundle with this certificate once, at its end, and no other of ours. @param before what was installed last */
export function withCertificate(bundle: string, pem: string, before = ""): string {
  const cleaned = withoutCertificate(bundle, before.trim());
  const wanted = pem.trim();
  // update-ca-certificates has added it, without our marks.
  if (wanted === "" || cleaned.includes(wanted)) return cleaned;
  const separator = cleaned === "" || cleaned.endsWith("\n") ? "" : "\n";
  return `${cleaned}${separator}${BEGIN}\n${wanted}\n${END}\n`;
}

function withoutCertificate(bundle: string, before: string): string {
  const start = bundle.indexOf(`${BEGIN}\n`);
  const end = bundle.indexOf(`${END}\n`, start);
  const unmarked = start < 0 || end < 0 ? bundle : bundle.slice(0, start) + bundle.slice(end + END.length + 1);
  return before === "" ? unmarked : unmarked.replaceAll(`${before}\n`, "");
}

/**
 * Idempotent. An empty PEM removes the authority; when none is installed, that costs one look-up.
 * @param root `/` outside of tests
 * @returns variables for programs that ignore the system's certificates; they name files that only root can write
 */
export async function installCertificate(root: string, pem: string): Promise<Readonly<Record<string, string>>> {
  const at = (path: string) => posix.join(root, path);
  const before = (await readIfThere(at(ANCHOR))) ?? (await readIfThere(at(CA_FILE))) ?? "";
  if (pem === "" && before === "") return {};
  if (before !== "" && before.trim() !== pem.trim()) await unlinkHash(at(HASHED), before);
  const present: string[] = [];
  for (const bundle of BUNDLES) if (await rewrite(at(bundle), pem, before)) present.push(bundle);
  if (pem === "") {
    for (const path of [ANCHOR, CA_FILE]) await rm(at(path), { force: true });
    return {};
  }
  const [first] = BUNDLES;
  // An image without any authority trusts none; now it trusts this one.
  if (present.length === 0) await replace(at(first), withCertificate("", pem), 0o644);
  for (const path of [ANCHOR, CA_FILE]) await replace(at(path), `${pem.trim()}\n`, 0o644);
  await linkHash(at(HASHED), pem);
  const bundle = `/${present[0] ?? first}`;
  // Node adds its file to its own list; other programs need all authorities in one file.
  return { NODE_EXTRA_CA_CERTS: `/${CA_FILE}`, SSL_CERT_FILE: bundle, REQUESTS_CA_BUNDLE: bundle };
}

async function rewrite(path: string, pem: string, before: string): Promise<boolean> {
  const text = await readIfThere(path);
  if (text === undefined) return false;
  const after = withCertificate(text, pem, before);
  // Writes the file behind a link, so that several names of one file still name one file.
  const real = await realpath(path);
  if (after !== text) await replace(real, after, (await stat(real)).mode & 0o755);
  return true;
}

async function linkHash(directory: string, pem: string): Promise<void> {
  const hash = subjectHash(pem);
  if (hash === undefined) return;
  await symlink(`/${ANCHOR}`, posix.join(directory, LINK)).catch(unlessThere);
  for (let n = 0; n < MOST_ALIKE; n += 1) {
    const path = posix.join(directory, `${hash}.${n}`);
    const target = await readlink(path).catch(() => undefined);
    if (target === LINK) return;
    if (target !== undefined) continue;
    await symlink(LINK, path).catch(unlessThere);
    return;
  }
}

async function unlinkHash(directory: string, pem: string): Promise<void> {
  // Without a hash this product made no link.
  const hash = subjectHash(pem);
  for (let n = 0; n < MOST_ALIKE; n += 1) {
    const path = posix.join(directory, `${hash}.${n}`);
    if ((await readlink(path).catch(() => undefined)) === LINK) await rm(path, { force: true });
  }
  await rm(posix.join(directory, LINK), { force: true });
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
