import { describe, expect, it } from "vitest";
import { reachProblems } from "../../../../shared/http/reach.ts";

const TLS = { domain: "a.example", tlsCertFile: "/c.pem", tlsKeyFile: "/k.pem", withoutTls: "refuse" };
const LOOPBACK = { SVC_API_HOST: "127.0.0.1", SVC_EDGE_HOST: "::1" };

describe("settings that let clients in", () => {
  it("are accepted at loopback, with and without TLS beside it", () => {
    expect(reachProblems({ withoutTls: "refuse" }, LOOPBACK)).toEqual([]);
    expect(reachProblems(TLS, LOOPBACK)).toEqual([]);
  });

  it.each(["0.0.0.0", "::", "10.0.0.1", "sbx.example.org"])("are refused for a port in clear at %s", (host) => {
    const problems = reachProblems(TLS, { ...LOOPBACK, SVC_EDGE_HOST: host });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`SVC_EDGE_HOST ${host} would send keys and all traffic over the network in clear`);
  });

  it.each(["a-proxy-of-mine-ends-tls", "keys-cross-the-network-in-clear"])(
    "are accepted with the word %s",
    (withoutTls) => {
      expect(reachProblems({ withoutTls }, { SVC_API_HOST: "0.0.0.0" })).toEqual([]);
    },
  );

  it.each([
    [{ ...TLS, tlsKeyFile: undefined }, "SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE are set together"],
    [{ ...TLS, domain: undefined }, "SVC_TLS_CERT_FILE needs SVC_DOMAIN"],
  ])("name what is missing", (settings, problem) => {
    expect(reachProblems(settings, LOOPBACK)[0]).toContain(problem);
  });
});
