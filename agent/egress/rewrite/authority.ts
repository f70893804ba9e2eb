/**
 * The node's own certificate authority: it signs the certificates that sandboxes see for hosts with a `transform` rule.
 * Only sandboxes whose policy has rules trust it; its key never leaves the agent and its egress process.
 */

import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { chmod, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import type { CertificateWithKey } from "../channel/messages.ts";

const FILE = "egress-authority.pem";
const DAY_MS = 86_400_000;
const LIFETIME_MS = 3650 * DAY_MS;
/** Long before its end, because sandboxes get the new authority only when they start, resume or get rules. */
const RENEWED_BEFORE_MS = 365 * DAY_MS;
/** Clocks of sandboxes restored from memory may be behind for a moment. */
const BACKDATED_MS = DAY_MS;

/**
 * Loads it, or makes one where it is missing, about to end, or damaged (no pair of certificate and key). The caller
 * holds the lock of the state directory.
 * @param now Unix milliseconds
 */
export async function loadAuthority(stateDir: string, now: number): Promise<CertificateWithKey> {
  const path = join(stateDir, FILE);
  const present = await read(path);
  if (present !== undefined && lasts(present, now)) {
    await chmod(path, 0o600);
    return present;
  }
  // Imported only here, because an authority is made once in ten years.
  const { makeAuthority } = await import("./certificates.ts");
  // Each authority has a different name, so that no verifier takes one for another.
  const name = `svc egress ${randomBytes(4).toString("hex")}`;
  const made = await makeAuthority(name, { from: now - BACKDATED_MS, until: now + LIFETIME_MS });
  await write(path, made.certificate + made.key);
  return made;
}

/** `caBundle` for a sandbox under this policy. Empty: it trusts no authority of the node any more. */
export function caFor(policy: Pick<EgressPolicy, "rules">, authority: Pick<CertificateWithKey, "certificate">): string {
  return policy.rules.length === 0 ? "" : authority.certificate;
}

function lasts({ certificate, key }: CertificateWithKey, now: number): boolean {
  try {
    const parsed = new X509Certificate(certificate);
    return parsed.checkPrivateKey(createPrivateKey(key)) && Date.parse(parsed.validTo) - now > RENEWED_BEFORE_MS;
  } catch {
    return false;
  }
}

async function read(path: string): Promise<CertificateWithKey | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const block = (label: string) =>
    new RegExp(`-----BEGIN ${label}-----[^-]+-----END ${label}-----\\n?`).exec(text)?.[0] ?? "";
  return { certificate: block("CERTIFICATE"), key: block("PRIVATE KEY") };
}

// One file, so that certificate and key always belong together; durable before it has its name.
async function write(path: string, text: string): Promise<void> {
  const beside = `${path}.new`;
  const file = await open(beside, "w", 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(beside, path);
}
