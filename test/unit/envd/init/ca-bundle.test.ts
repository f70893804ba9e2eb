import { describe, expect, test } from "vitest";
import { withCertificates } from "../../../../envd/init/ca-bundle.ts";

const OURS = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----";
const SECOND = OURS.replace("ours", "second");
const OTHER = "-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----";

describe("a bundle", () => {
  test("gets the certificate once, however often it is installed", () => {
    const once = withCertificates(`${OTHER}\n`, OURS);
    expect(once).toBe(`${OTHER}\n# svc: begin\n${OURS}\n# svc: end\n`);
    expect(withCertificates(once, `${OURS}\n\n`)).toBe(once);
  });

  test("loses the earlier certificate of the platform, and nothing else", () => {
    const before = withCertificates(`${OTHER}\n`, OURS.replace("ours", "old"));
    expect(withCertificates(`${before}appended\n`, OURS)).toBe(
      `${OTHER}\nappended\n# svc: begin\n${OURS}\n# svc: end\n`,
    );
    expect(withCertificates(before, "")).toBe(`${OTHER}\n`);
  });

  test("gets several certificates in one block, and one of them again when only one is left", () => {
    const both = withCertificates(`${OTHER}\n`, `# the company\n${OURS}\n${SECOND}\n${OURS}\n`);
    expect(both).toBe(`${OTHER}\n# svc: begin\n${OURS}\n${SECOND}\n# svc: end\n`);
    expect(withCertificates(both, SECOND, `${OURS}\n${SECOND}`)).toBe(withCertificates(`${OTHER}\n`, SECOND));
    // update-ca-certificates has taken one of them into its part.
    expect(withCertificates(`${OTHER}\n${OURS}\n`, `${OURS}\n${SECOND}`)).toBe(
      `${OTHER}\n${OURS}\n# svc: begin\n${SECOND}\n# svc: end\n`,
    );
  });

  test("without a line break at its end is still well formed", () => {
    expect(withCertificates(OTHER, OURS)).toContain("-----END CERTIFICATE-----\n# svc: begin");
  });
});
