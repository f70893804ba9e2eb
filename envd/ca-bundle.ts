/** Makes programs in the sandbox trust one more certificate authority: in the bundles the image has, and beside them. */

import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { posix } from "node:path";
import { errnoOf } from "./errno.ts";

/** Where the distributions keep the bundle: Debian and Alpine, Fedora and its kin, old Red Hat, SUSE, plain OpenSSL. */
const BUNDLES = [
  "etc/ssl/certs/ca-certificates.crt",
  "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "etc/pki/tls/certs/ca-bundle.crt",
  "etc/ssl/ca-bundle.pem",
  "etc/ssl/cert.pem",
];
/** Found by update-ca-certificates, so that installing packages does not lose it. */
const ANCHOR = "usr/local/share/ca-certificates/svc-ca.crt";
/** For programs that are told by a variable. */
export const CA_FILE = "run/svc/ca.pem";

const BEGIN = "# svc: begin";
const END = "# svc: end";

/** Pure: the bundle with this certificate once, at its end, and no other of ours. */
export function withCertificate(bundle: string, pem: string): string {
  const cleaned = withoutCertificate(bundle);
  if (pem.trim() === "") return cleaned;
  const separator = cleaned === "" || cleaned.endsWith("\n") ? "" : "\n";
  return `${cleaned}${separator}${BEGIN}\n${pem.trim()}\n${END}\n`;
}

function withoutCertificate(bundle: string): string {
  const start = bundle.indexOf(`${BEGIN}\n`);
  const end = bundle.indexOf(`${END}\n`, start);
  return start < 0 || end < 0 ? bundle : bundle.slice(0, start) + bundle.slice(end + END.length + 1);
}

/** Idempotent. An empty PEM takes ours out again. @param root `/` outside of tests */
export async function installCertificate(root: string, pem: string): Promise<void> {
  const at = (path: string) => posix.join(root, path);
  let present = 0;
  for (const bundle of BUNDLES) if (await rewrite(at(bundle), pem)) present += 1;
  // An image without any authority trusts nobody; now it trusts ours.
  const [first] = BUNDLES;
  if (present === 0 && pem !== "" && first !== undefined) await replace(at(first), withCertificate("", pem), 0o644);
  for (const path of [ANCHOR, CA_FILE]) {
    if (pem === "") await rm(at(path), { force: true });
    else await replace(at(path), `${pem.trim()}\n`, 0o644);
  }
}

async function rewrite(path: string, pem: string): Promise<boolean> {
  let before: string;
  try {
    before = await readFile(path, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return false;
    throw error;
  }
  const after = withCertificate(before, pem);
  if (after !== before) await replace(path, after, (await stat(path)).mode & 0o777);
  return true;
}

// Programs may read it at this moment: they see the old one or the new one.
async function replace(path: string, text: string, mode: number): Promise<void> {
  await mkdir(posix.dirname(path), { recursive: true });
  const beside = `${path}.svc-new`;
  await writeFile(beside, text, { mode });
  await chmod(beside, mode);
  await rename(beside, path);
}
