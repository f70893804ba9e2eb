import { describe, expect, it } from "vitest";
import { reachFailure } from "../../../../shared/tls/failures.ts";

const AT = "10.0.0.2:5010";

function failed(code: string, more: object = {}): Error {
  return new Error("failed", { cause: Object.assign(new Error(code), { code, ...more }) });
}

describe("the reason why a machine was not reached", () => {
  it.each([
    ["ECONNREFUSED", "nothing listens at 10.0.0.2:5010"],
    ["UND_ERR_CONNECT_TIMEOUT", "open its port in the firewalls between the machines"],
    ["EHOSTUNREACH", "look at the routes and firewalls"],
    ["ENOTFOUND", "no resolver of this machine knows the name in 10.0.0.2:5010"],
    ["CERT_NOT_YET_VALID", "set the clocks of both machines"],
    ["CERT_HAS_EXPIRED", "set the clocks of both machines"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "is of another authority than the platform's"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "does not speak TLS"],
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "join the platform with it"],
  ])("of %s names what to look at", (code, part) => {
    const text = reachFailure(failed(code), AT);
    expect(text).toContain(part);
    expect(text).toContain(AT);
  });

  it("of another peer names both", () => {
    const error = failed("ERR_TLS_CERT_ALTNAME_INVALID", { found: "svc://node/b", expects: "svc://node/a" });
    expect(reachFailure(error, AT)).toContain("its certificate is of svc://node/b, not of svc://node/a");
    expect(reachFailure(failed("ERR_TLS_CERT_ALTNAME_INVALID"), AT)).toContain("is not for this host name");
  });

  it.each([failed("ENOENT"), new Error("no code"), "text", undefined])("is not known of %j", (error) => {
    expect(reachFailure(error, AT)).toBe(undefined);
  });
});
