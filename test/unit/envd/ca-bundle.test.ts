import { describe, expect, test } from "vitest";
import { withCertificate } from "../../../envd/init/ca-bundle.ts";

const OURS = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----";
const OTHER = "-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----";

describe("a bundle", () => {
  test("gets the certificate once, however often it is installed", () => {
    const once = withCertificate(`${OTHER}\n`, OURS);
    expect(once).toBe(`${OTHER}\n# svc: begin\n${OURS}\n# svc: end\n`);
    expect(withCertificate(once, `${OURS}\n\n`)).toBe(once);
  });

  test("loses the earlier certificate of the platform, and nothing else", () => {
    const before = withCertificate(`${OTHER}\n`, "old");
    expect(withCertificate(`${before}appended\n`, OURS)).toBe(
      `${OTHER}\nappended\n# svc: begin\n${OURS}\n# svc: end\n`,
    );
    expect(withCertificate(before, "")).toBe(`${OTHER}\n`);
  });

  test("without a line break at its end is still well formed", () => {
    expect(withCertificate(OTHER, OURS)).toContain("-----END CERTIFICATE-----\n# svc: begin");
  });
});
