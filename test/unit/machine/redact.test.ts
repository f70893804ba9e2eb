/** What leaves the machine in a debug bundle holds no secret: forty of many kinds and places are planted. */

import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { isSecretName, redactor } from "../../../machine/bundle/redact.ts";

const random = () => randomBytes(24).toString("base64url").replaceAll(/[-_]/g, "x");
/** Secrets that only the machine's files know; they may stand anywhere. */
const KEPT = Array.from({ length: 8 }, (_, index) => `${random()}${index % 2 === 0 ? "/+" : ""}`);
const [NODE_KEY = "", SEED = "", ADMIN = "", SEAL = "", JOIN = "", METRICS = "", CONTROL = "", WITH_QUOTE = ""] = KEPT;

/** Each line is a place; the secret in it must not be found afterwards. */
const PLANTED: readonly (readonly [place: string, secret: string, text: (secret: string) => string])[] = [
  ["a setting", random(), (it) => `SVC_NODE_KEY=${it}`],
  ["a setting in quotes", random(), (it) => `SVC_ENCRYPTION_KEY="${it}"`],
  ["an exported setting", random(), (it) => `export SVC_SEED='${it}'`],
  ["an earlier value", random(), (it) => `SVC_METRICS_TOKEN_PREVIOUS=${it}`],
  ["a database URL", random(), (it) => `DATABASE_URL=postgresql://svc:${it}@db.example.org/svc`],
  ["a proxy with a password", random(), (it) => `https_proxy=http://user:${it}@proxy.example.org:3128`],
  ["a field of a log line", random(), (it) => `{"level":30,"msg":"x","apiKey":"${it}"}`],
  ["a deep field", random(), (it) => JSON.stringify({ a: { b: { c: { d: { envdAccessToken: it } } } } })],
  ["a field in a list", random(), (it) => JSON.stringify({ nodes: [{ controlToken: it }] })],
  ["JSON in a string of JSON", random(), (it) => JSON.stringify({ msg: JSON.stringify({ password: it }) })],
  ["variables of a sandbox", random(), (it) => JSON.stringify({ envs: { HARMLESS: it } })],
  ["a list of tokens", random(), (it) => JSON.stringify({ tokens: [it, "b"] })],
  ["an API key in words", `svc_${random()}`, (it) => `the key ${it} is unknown`],
  ["a key of the SDK", `e2b_${random()}`, (it) => `E2B: ${it}`],
  ["an Authorization header", random(), (it) => `Authorization: Bearer ${it}`],
  ["an Authorization header in JSON", random(), (it) => JSON.stringify({ headers: { authorization: `Bearer ${it}` } })],
  ["a basic header", random(), (it) => `authorization: Basic ${it}`],
  ["a bearer in words", random(), (it) => `sent bearer ${it} and got 401`],
  ["X-API-Key", random(), (it) => `X-API-Key: ${it}`],
  ["X-Admin-Token in JSON", random(), (it) => JSON.stringify({ "x-admin-token": it })],
  ["X-Access-Token", random(), (it) => `x-access-token=${it}`],
  ["a cookie", random(), (it) => `Set-Cookie: session=${it}; HttpOnly`],
  ["a query", random(), (it) => `GET /files?path=/a&signature=${it}&x=1`],
  ["a signed URL", random(), (it) => `https://s3.example.org/b?X-Amz-Credential=a&X-Amz-Signature=${it}`],
  ["a token in a query", random(), (it) => `wss://h/ws?access_token=${it}`],
  ["an AWS key id", "AKIAABCDEFGHIJKLMNOP", (it) => `using ${it} for the store`],
  ["an AWS secret", random(), (it) => `aws_secret_access_key = ${it}`],
  ["a token of GitHub", `ghp_${"a1B2".repeat(9)}`, (it) => `remote: https://${it}:x@github.example.org`],
  ["a JWT", `eyJhbGciOiJFUzI1NiJ9.${random()}.${random()}`, (it) => `token of the identity: ${it}`],
  ["a private key", random(), (it) => `-----BEGIN PRIVATE KEY-----\n${it}\n-----END PRIVATE KEY-----\n`],
  [
    "a private key in JSON",
    random(),
    (it) => JSON.stringify({ pem: `-----BEGIN EC PRIVATE KEY-----\n${it}\n-----END EC PRIVATE KEY-----` }),
  ],
  ["a private key that is cut", random(), (it) => `-----BEGIN RSA PRIVATE KEY-----\n${it}`],
  ["an option of a command", random(), (it) => `psql --password ${it} --host db`],
  ["YAML", random(), (it) => `client_secret: ${it}\nname: x`],
  ["a service account", random(), (it) => JSON.stringify({ serviceAccountJson: `{"private_key":"${it}"}` })],
  ["a chat token", `xoxb-1234567890-${"ab1".repeat(6)}`, (it) => `webhook with ${it}`],
  ["a kept secret in words", NODE_KEY, (it) => `could not use ${it} here`],
  ["a kept secret as a label", METRICS, (it) => `svc_build_info{node="${it}"} 1`],
  ["a kept secret in a URL", SEED, (it) => `/x/${encodeURIComponent(it)}/y`],
  ["a kept secret in base64", ADMIN, (it) => `sent ${Buffer.from(it).toString("base64")}`],
  ["a kept secret in a file name", SEAL, (it) => `/tmp/${it}.txt`],
  ["a kept secret beside letters", JOIN, (it) => `x${it}y`],
  ["a kept secret over and over", CONTROL, (it) => `${it}${it} ${it}`],
  ["a kept secret in an error", WITH_QUOTE, (it) => `error: "${it}" is not a number`],
];

test.each(PLANTED)("%s is redacted", (_place, secret, text) => {
  const planted = text(secret);
  const left = redactor(KEPT)(planted);
  for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64").replace(/=+$/, "")]) {
    expect(left).not.toContain(form);
  }
  expect(left).toContain("[redacted]");
});

test("all of them in one text are redacted, and the lines stay lines", () => {
  const text = PLANTED.filter(([, , make]) => !make("x").includes("BEGIN")).map(([, secret, make]) => make(secret));
  const left = redactor(KEPT)(text.join("\n"));
  for (const [place, secret, make] of PLANTED)
    if (!make("x").includes("BEGIN")) expect(left, place).not.toContain(secret);
});

test.each([
  ['{"level":30,"time":"2026-11-20T12:00:00.000Z","msg":"started","sandboxId":"isb6f3b4nz"}'],
  ["SVC_API_PORT=3000\nSVC_SECRETS_KEY_FILE=/etc/svc/secrets.key\nSVC_ADMIN_TOKEN_FILE=/etc/svc/admin-token"],
  ['svc_sandboxes{state="running"} 3\nsvc_host_limit_used{limit="keys_of_root"} 12'],
  ["ok  engine\nfail lease: no orchestrator has answered within 15 s"],
  ['{"id":"node-1","clockSkewMs":3,"findings":[],"keyCount":2}'],
  ["10.213.0.0/16 dev svc0 proto kernel scope link src 10.213.0.1"],
])("what is no secret stays: %s", (text) => {
  expect(redactor(KEPT)(text)).toBe(text);
});

test("JSON stays JSON", () => {
  const value = { a: 1, apiKey: "x".repeat(20), list: [{ token: "y".repeat(20), n: null }], ok: true };
  const left = JSON.parse(redactor([])(JSON.stringify(value))) as typeof value;
  expect(left).toEqual({ a: 1, apiKey: "[redacted]", list: [{ token: "[redacted]", n: null }], ok: true });
});

test.each([
  ["SVC_NODE_KEY", true],
  ["DATABASE_PASSWORD", true],
  ["accessToken", true],
  ["x-api-key", true],
  ["client_secret", true],
  ["key", true],
  ["SVC_SECRETS_KEY_FILE", false],
  ["maxTokens", false],
  ["monkey", false],
  ["sandboxId", false],
  ["passed", false],
])("%s names a secret: %s", (name, is) => {
  expect(isSecretName(name)).toBe(is);
});

test("words behind the path of a file whose name is like an option's stay", () => {
  const text = "/etc/svc/admin-token is 0600: chown 990:990 /etc/svc/admin-token && chmod 600 /etc/svc/admin-token";
  expect(redactor([])(text)).toBe(text);
  expect(redactor([])("/usr/bin/login --token hunter2")).toBe("/usr/bin/login --token [redacted]");
});
