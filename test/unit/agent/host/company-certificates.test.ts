import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeAuthority, makeLeaf, readSigner } from "../../../../agent/egress/rewrite/certificates.ts";
import { readCompanyCertificates } from "../../../../agent/host/company-certificates.ts";

const PERIOD = { from: Date.now() - 1e7, until: Date.now() + 1e8 };
let directory: string;
let first: { certificate: string; key: string };
let second: { certificate: string; key: string };

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "company-"));
  [first, second] = await Promise.all([makeAuthority("Company Root", PERIOD), makeAuthority("Company Proxy", PERIOD)]);
});
afterAll(() => rmSync(directory, { recursive: true }));

const file = (text: string) => {
  const path = join(directory, "company.pem");
  writeFileSync(path, text);
  return path;
};

test("certificates are read without the text around them, each once, with the line ends of any system", () => {
  const text = `# the root\n${first.certificate}\nsubject=proxy\n${second.certificate.replaceAll("\n", "\r\n")}${first.certificate}`;
  expect(readCompanyCertificates(file(text))).toBe(`${first.certificate}${second.certificate}`);
});

test("a file that would not do what the operator means is refused, and the reason names the file", async () => {
  const leaf = await makeLeaf(await readSigner(first), "proxy.test", PERIOD);
  const ended = await makeAuthority("Old Root", { from: Date.now() - 2e8, until: Date.now() - 1e8 });
  const path = join(directory, "company.pem");
  const cases: readonly [string, string][] = [
    ["", "holds no certificate in PEM form"],
    [first.certificate + first.key, "holds a private key, which sandboxes would get"],
    [first.certificate.replace("-----END CERTIFICATE-----", ""), "has a block without its end"],
    [first.certificate.replace(/\nMII/, "\nAAA"), "is damaged: certificate 1 of 1 cannot be read"],
    [first.certificate.replaceAll("CERTIFICATE", "X509 CRL"), 'holds a block "X509 CRL" beside certificates'],
    [first.certificate + leaf.certificate, "holds a certificate that is no authority: certificate 2 of 2"],
    [ended.certificate, "holds a certificate that ended on"],
    [first.certificate.repeat(101), "holds more than 100 certificates"],
    ["x".repeat(1024 * 1024 + 1), "is larger than 1048576 bytes"],
  ];
  for (const [text, why] of cases) expect(() => readCompanyCertificates(file(text))).toThrow(`${path} ${why}`);
  expect(() => readCompanyCertificates("/nowhere/ca.pem")).toThrow("/nowhere/ca.pem cannot be read (ENOENT)");
  expect(() => readCompanyCertificates(directory)).toThrow(`${directory} is not a file`);
});
