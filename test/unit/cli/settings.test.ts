/** Settings as the environment has them, also an odd one: keys, addresses, homes and proxies. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { unreached } from "../../../cli/api/client.ts";
import { contextsFile, readContexts } from "../../../cli/api/contexts.ts";
import { proxyWords } from "../../../cli/api/proxies.ts";
import { readSettings } from "../../../cli/api/settings.ts";

const URL = "http://10.0.0.5:3000";

test("values of a file with Windows line ends are the values", async () => {
  const env = { SVC_API_URL: `${URL}/\r`, SVC_API_KEY: "svc_key\r", SVC_ADMIN_TOKEN: " token\r\n" };
  expect(await readSettings(env, undefined)).toMatchObject({ apiUrl: URL, apiKey: "svc_key", adminToken: "token" });
});

test.each([
  ["SVC_API_KEY", "svc_one\nsvc_two"],
  ["SVC_API_KEY", "“svc_one”"],
  ["E2B_API_KEY", "svc_one two"],
  ["SVC_ADMIN_TOKEN", "svc_one–two"],
])("a value of %s that no header can have is refused, and not shown: %j", async (name, value) => {
  const refused = await readSettings({ SVC_API_URL: URL, [name]: value }, undefined).catch((error: unknown) => error);
  expect(refused).toMatchObject({ exitCode: 2, message: expect.stringContaining("that no key has") as string });
  expect(JSON.stringify(refused) + String(refused)).not.toContain("svc_one");
});

test("an address with a password is refused, and the password not shown", async () => {
  const asked = readSettings({ SVC_API_URL: "https://me:planted@svc.example.org" }, undefined);
  await expect(asked).rejects.toThrow("the address of the API has a user or a password in it");
  await expect(asked).rejects.not.toThrow("planted");
});

test("an empty HOME is none: no file of the present directory is read", () => {
  expect(contextsFile({ HOME: "" })).toBe(contextsFile({}));
  expect(contextsFile({ HOME: "" })).toMatch(/^\//);
});

test("a home that is no directory has no contexts", async () => {
  expect(await readContexts({ HOME: "/dev/null" })).toEqual({ current: undefined, contexts: {} });
});

test("a file of contexts that cannot be read is named", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-home-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, ".config/svc/config.toml"), { recursive: true });
  await expect(readContexts({ HOME: folder })).rejects.toThrow(`cannot read ${folder}/.config/svc/config.toml: EISDIR`);
});

test("root's file of operators' tokens belongs to the address of the machine's platform, by whatever that is named", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-checkout-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const text = `[contexts.here]\napi_url = "${URL}/"\n[contexts.there]\napi_url = "http://10.0.0.6:3000"\n`;
  mkdirSync(join(folder, "svc"));
  writeFileSync(join(folder, "svc/config.toml"), text, { mode: 0o600 });
  mkdirSync(join(folder, ".svc-none"));
  writeFileSync(join(folder, ".svc-none/env"), `SVC_API_URL=${URL}\n`);
  const env = { SVC_CHECKOUT: folder, SVC_INSTANCE: "none", XDG_CONFIG_HOME: folder };
  const fileFor = async (more: object, context?: string) =>
    (await readSettings({ ...env, ...more }, context)).adminFile;
  const file = "/etc/svc-none/admin-token";
  expect(await fileFor({})).toBe(file);
  expect(await fileFor({ E2B_API_URL: `${URL}/` })).toBe(file);
  expect(await fileFor({}, "here")).toBe(file);
  expect(await fileFor({}, "there")).toBeUndefined();
  expect(await fileFor({ SVC_API_URL: "http://10.0.0.6:3000" })).toBeUndefined();
  expect(await fileFor({ E2B_DOMAIN: "sbx.example.org" })).toBeUndefined();
});

test.each([
  [
    "https://svc.example.org",
    { https_proxy: "http://p:1" },
    "https_proxy names a proxy, which is used with NODE_USE_ENV",
  ],
  ["http://10.0.0.5:3000", { HTTP_PROXY: "http://p:1" }, "HTTP_PROXY names a proxy"],
  ["http://10.0.0.5:3000", { http_proxy: "http://p:1", NODE_USE_ENV_PROXY: "1" }, "no_proxy=10.0.0.5"],
  ["http://127.0.0.1:3000", { http_proxy: "http://p:1", NODE_USE_ENV_PROXY: "1" }, "no_proxy=127.0.0.1"],
])("that %s gives no answer has to do with the proxy of %j", (address, env, words) => {
  expect(proxyWords(env, address)).toContain(words);
});

test.each([
  ["https://svc.example.org", {}],
  ["https://svc.example.org", { http_proxy: "http://p:1", https_proxy: "" }],
  ["http://127.0.0.1:3000", { http_proxy: "http://p:1" }],
  ["http://api.localhost:3000", { http_proxy: "http://p:1" }],
  ["http://[::1]:3000", { http_proxy: "http://p:1" }],
  ["no address", { http_proxy: "http://p:1" }],
])("that %s gives no answer has nothing to do with the proxy of %j", (address, env) => {
  expect(proxyWords(env, address)).toBeUndefined();
});

test.each([
  ["ERR_SSL_WRONG_VERSION_NUMBER", "the address begins with http:// there"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "is for other names"],
  ["CERT_HAS_EXPIRED", "is not valid now"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "NODE_EXTRA_CA_CERTS=FILE"],
  ["ECONNREFUSED", "look whether the platform runs there"],
])("an address that fails with %s is told with its way out", (code, words) => {
  const failure = unreached(URL, new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code }) }), 1);
  expect(failure).toMatchObject({ exitCode: 1, wayOut: expect.stringContaining(words) as string });
  expect(failure.message).toContain(`${URL}: ${code}`);
});
