/** A certificate for a domain in two files, by an authority of the test's own, as an operator would put them in place. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueForSite, makeSiteAuthority } from "../../../shared/tls/site/own-authority.ts";
import type { CertificateWithKey } from "../../../shared/tls/x509.ts";

export interface TestSite {
  readonly authority: CertificateWithKey;
  readonly certFile: string;
  readonly keyFile: string;
  /** Makes a certificate and puts it in place. @param at the time that it is made at */
  renew(at?: number): Promise<CertificateWithKey>;
  remove(): void;
}

export async function testSite(domain: string): Promise<TestSite> {
  const authority = await makeSiteAuthority(domain, Date.now());
  const folder = mkdtempSync(join(tmpdir(), "svc-site-"));
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  async function renew(at = Date.now()): Promise<CertificateWithKey> {
    const pair = await issueForSite(authority, domain, at);
    writeFileSync(certFile, pair.certificate);
    writeFileSync(keyFile, pair.key, { mode: 0o600 });
    return pair;
  }
  await renew();
  return { authority, certFile, keyFile, renew, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
