/** The network options that a create and an update accept and refuse, and the options as a client reads them back. */

import { ALL_TRAFFIC, Sandbox, type SandboxNetworkOpts, type SandboxNetworkUpdate } from "e2b";
import { describe, expect, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { ownSandbox, refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const DOMAINS =
  "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.";

const header = (name: string, value: string) => ({
  rules: { "a.com": [{ transform: { headers: { [name]: value } } }] },
});

describe("refused network options", () => {
  const sandbox = sharedSandbox();

  test.each<[string, SandboxNetworkUpdate, string]>([
    ["a domain in deny", { denyOut: ["google.com"] }, "invalid denied CIDR google.com"],
    ["garbage in deny", { denyOut: ["not-an-ip!"] }, "invalid denied CIDR not-an-ip!"],
    ["a domain beside everything in deny", { denyOut: [ALL_TRAFFIC, "google.com"] }, "invalid denied CIDR google.com"],
    ["no address in deny", { denyOut: ["0.0.0.0"] }, "invalid denied CIDR 0.0.0.0"],
    ["a domain in allow, nothing in deny", { allowOut: ["google.com"] }, DOMAINS],
    ["a domain in allow, a part in deny", { allowOut: ["google.com"], denyOut: ["8.8.8.8"] }, DOMAINS],
    ["a wildcard in allow, nothing in deny", { allowOut: ["*.google.com"] }, DOMAINS],
    ["a wildcard in allow, a part in deny", { allowOut: ["*.google.com"], denyOut: ["8.8.8.0/24"] }, DOMAINS],
    [
      "a domain and an address in allow, a part in deny",
      { allowOut: ["a.com", "1.1.1.1"], denyOut: ["8.8.8.8"] },
      DOMAINS,
    ],
    ["a rule for everything", { rules: { "*": [{}] } }, "invalid rule host '*'"],
    ["a rule with the wildcard inside", { rules: { "a.*.com": [{}] } }, "invalid rule host 'a.*.com'"],
    ["two rules for a host", { rules: { "a.com": [{}, {}] } }, "rules.a.com"],
    ["a rule that changes the host", header("Host", "b.com"), "must not set the header 'Host'"],
    ["a rule that frames the body", header("Content-Length", "0"), "must not set the header 'Content-Length'"],
    ["a header of two lines", header("A", "b\r\nC: d"), "characters that are not allowed"],
    ["a broken placeholder", header("A", "${e2b.secrets.}"), "malformed placeholder"],
    [
      "a placeholder that nothing fills",
      header("A", "b ${e2b.secrets.C}"),
      "have the placeholder ${e2b.secrets.C}, but the project has no secret 'c'",
    ],
    ["a proxy on this host", { egressProxy: { address: "127.0.0.1:1080" } }, "must not be an internal address"],
    ["a proxy at the metadata", { egressProxy: { address: "169.254.169.254:80" } }, "must not be an internal address"],
    ["a proxy without port", { egressProxy: { address: "proxy.example" } }, "must be host:port"],
    ["a password without a name", { egressProxy: { address: "p.example:1", password: "x" } }, "requires a username"],
    [
      "a user name of too many bytes",
      { egressProxy: { address: "p.example:1", username: "ü".repeat(128) } },
      "255 bytes",
    ],
  ])("%s: create and update refuse it and give the reason", async (_name, network, words) => {
    for (const ask of [() => Sandbox.create({ network }), () => sandbox().updateNetwork(network)]) {
      const error = await refusal(ask());
      expect(error.message).toMatch(/^400: /);
      expect(error.message).toContain(words);
    }
  });

  test("an update of a missing sandbox, or without a key, is refused", async () => {
    await expect(Sandbox.updateNetwork("inosuchsandbox", {})).rejects.toThrow("Sandbox inosuchsandbox not found");
    const path = `/sandboxes/${sandbox().sandboxId}/network`;
    expect((await api(platform, "PUT", path, { body: {}, key: null })).status).toBe(401);
    expect((await api(platform, "PUT", "/sandboxes/inosuchsandbox/network", { body: {} })).status).toBe(404);
  });

  test("an update and a check of a paused sandbox are refused with 409", async () => {
    const own = await ownSandbox();
    await own.pause();
    expect((await api(platform, "PUT", `/sandboxes/${own.sandboxId}/network`, { body: {} })).status).toBe(409);
    const check = await api(platform, "GET", `/sandboxes/${own.sandboxId}/network/check?host=a.com&port=443`);
    expect(check.status).toBe(409);
  });

  test.each([
    "",
    "?host=a.com",
    "?host=a%20b&port=443",
    "?host=127.1&port=443",
    "?host=a.com&port=0",
    "?host=::1&port=1",
  ])("a check of '%s' is refused", async (query) => {
    const reply = await api(platform, "GET", `/sandboxes/${sandbox().sandboxId}/network/check${query}`);
    expect(reply.status).toBe(400);
  });
});

describe("accepted network options", () => {
  const headers = { Authorization: "Bearer of the test" };

  test.each<[string, SandboxNetworkOpts, object]>([
    ["nothing", {}, {}],
    ["an address", { allowOut: ["8.8.8.8"] }, { allowOut: ["8.8.8.8"] }],
    ["a range and a part denied", { allowOut: ["8.8.8.0/24"], denyOut: ["1.1.1.1"] }, { denyOut: ["1.1.1.1"] }],
    ["everything denied", { denyOut: [ALL_TRAFFIC] }, { denyOut: [ALL_TRAFFIC] }],
    ["a domain in capitals", { allowOut: ["Google.COM"], denyOut: [ALL_TRAFFIC] }, { allowOut: ["Google.COM"] }],
    ["everything twice", { allowOut: [ALL_TRAFFIC, ALL_TRAFFIC], denyOut: [ALL_TRAFFIC] }, {}],
    ["private ranges", { allowOut: ["10.0.0.0/8", "169.254.0.0/16"] }, { allowOut: ["10.0.0.0/8", "169.254.0.0/16"] }],
    ["IPv6", { denyOut: ["2001:db8::/32"] }, { denyOut: ["2001:db8::/32"] }],
    [
      "rules, their hosts in lower case",
      { rules: { "*.Example.COM": [{ transform: { headers } }], "a.com": [{}] } },
      { rules: { "*.example.com": [{ transform: { headers } }], "a.com": [{}] } },
    ],
    [
      "a proxy, without its password",
      { egressProxy: { address: "proxy.example:1080", username: "me", password: "secret" } },
      { egressProxy: { address: "proxy.example:1080", username: "me" } },
    ],
  ])("%s: create accepts it, and getInfo shows it as written", async (_name, network, shown) => {
    const sandbox = await ownSandbox({ network });
    const info = await sandbox.getInfo();
    expect(info.network).toMatchObject(shown);
    expect(JSON.stringify(info)).not.toContain('secret"');
  });
});
