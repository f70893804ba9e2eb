import { X509Certificate } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { endOf, problemsOf, unusable } from "../../../../shared/tls/site/certificate.ts";
import { issueForSite, makeSiteAuthority } from "../../../../shared/tls/site/own-authority.ts";
import type { CertificateWithKey } from "../../../../shared/tls/x509.ts";

const DAY = 86_400_000;
const AT = Date.UTC(2026, 10, 26, 12);
const FILES = { certFile: "/etc/tls/cert.pem", keyFile: "/etc/tls/key.pem" };
const DOMAIN = "sbx.example.org";

let authority: CertificateWithKey;
let pair: CertificateWithKey;
beforeAll(async () => {
  authority = await makeSiteAuthority(DOMAIN, AT);
  pair = await issueForSite(authority, DOMAIN, AT);
});

const ids = (shown: CertificateWithKey, at = AT, domain = DOMAIN) =>
  problemsOf(shown, { certFile: FILES.certFile, domain, at }).map(({ id }) => id);

describe("a certificate for a site", () => {
  it("of the platform's own authority serves the API, every sandbox and the bare domain", () => {
    expect(unusable(pair, FILES)).toBe(undefined);
    expect(ids(pair)).toEqual([]);
    const read = new X509Certificate(pair.certificate);
    for (const name of ["api", "49983-iabc", "sandbox"]) expect(read.checkHost(`${name}.${DOMAIN}`)).toBeDefined();
    expect(read.checkHost(DOMAIN)).toBeDefined();
    expect(endOf(pair)).toBe(AT + 397 * DAY);
  });

  it("is for the domain without the port that the domain may carry", async () => {
    const withPort = await issueForSite(await makeSiteAuthority("a.example:8443", AT), "a.example:8443", AT);
    expect(ids(withPort, AT, "a.example:8443")).toEqual([]);
    expect(new X509Certificate(withPort.certificate).subjectAltName).toBe("DNS:a.example, DNS:*.a.example");
  });

  it("of another domain is named, with the names that it has", () => {
    const [finding] = problemsOf(pair, { certFile: FILES.certFile, domain: "other.example", at: AT });
    expect(finding).toMatchObject({ id: "certificates.names", evidence: `it has DNS:${DOMAIN}, DNS:*.${DOMAIN}` });
  });

  it.each([
    ["an hour before it is made and earlier", AT - DAY, ["certificates.expiry"]],
    ["fifteen days before its end", AT + 382 * DAY, []],
    ["thirteen days before its end", AT + 384 * DAY, ["certificates.expiry"]],
    ["after its end", AT + 398 * DAY, ["certificates.expiry"]],
  ])("%s", (_when, at, expected) => {
    expect(ids(pair, at)).toEqual(expected);
  });

  it("without the chain that clients need is named", () => {
    const alone = {
      ...pair,
      certificate: pair.certificate.slice(0, pair.certificate.indexOf("END CERTIFICATE-----") + 21),
    };
    expect(ids(alone)).toEqual(["certificates.chain"]);
  });

  it.each([
    ["a key of another certificate", async () => ({ ...pair, key: (await issueForSite(authority, DOMAIN, AT)).key })],
    ["a certificate that is none", async () => ({ ...pair, certificate: "-----BEGIN CERTIFICATE-----\nno\n" })],
    ["a key that is none", async () => ({ ...pair, key: "" })],
    ["half of a certificate", async () => ({ ...pair, certificate: pair.certificate.slice(0, 300) })],
  ])("%s cannot be shown", async (_what, make) => {
    expect(unusable(await make(), FILES)?.id).toBe("certificates.files");
  });
});
