/** What leaves the machine in a debug bundle holds no secret: eighty of many kinds and places are planted. */

import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { isSecretName, redactor } from "../../../machine/bundle/redact.ts";

const random = () => randomBytes(24).toString("base64url").replaceAll(/[-_]/g, "x");
/** Secrets that only the machine's files know; they may stand anywhere. */
const KEPT = Array.from({ length: 8 }, (_, index) => `${random()}${index % 2 === 0 ? "/+" : ""}`);
const [NODE_KEY = "", SEED = "", ADMIN = "", SEAL = "", JOIN = "", METRICS = "", CONTROL = "", WITH_QUOTE = ""] = KEPT;
const base64 = (text: string) => Buffer.from(text).toString("base64");
const halves = (text: string) => [text.slice(0, 11), text.slice(11)];

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
  ["an Authorization header with a tab in it", random(), (it) => `Authorization: Bearer\t${it}`],
  ["an Authorization header over two lines", random(), (it) => `authorization: token\r\n  ${it}`],
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
  ["a kept secret inside base64", NODE_KEY, (it) => `auth ${base64(`a:${it}`)} ${base64(`ab:${it}`)}`],
  ["a kept secret in base64 of URLs", SEAL, (it) => `?state=${Buffer.from(it).toString("base64url")}&x=1`],
  ["a kept secret in hexadecimal digits", ADMIN, (it) => `0x${Buffer.from(it).toString("hex")}`],
  ["a kept secret over two lines", JOIN, (it) => `sent ${halves(it).join("\n  ")} twice`],
  ["a kept secret in base64 over lines", SEED, (it) => base64(`${"x".repeat(48)}${it}`).replaceAll(/.{40}/g, "$&\r\n")],
  [
    "a join token of this platform",
    random(),
    (it) => `up --join svcjoin1.${"0a".repeat(32)}.abcdefghijkl.${it} https://h`,
  ],
  ["a link that logs in", random(), (it) => `https://h/console/#code=${it}`],
  ["a key of OpenAI", `sk-proj-${random()}`, (it) => `Incorrect API key provided: ${it}.`],
  ["a key of Anthropic", `sk-ant-api03-${random()}`, (it) => `using ${it} for the agent`],
  ["a live key of Stripe", `sk_live_${random()}`, (it) => `charge with ${it}`],
  ["the secret of a webhook", `whsec_${base64(random())}`, (it) => `signed with ${it}`],
  ["a token of GitLab", `glpat-${random()}`, (it) => `fatal: ${it} was refused`],
  ["a fine token of GitHub", `github_pat_${random()}`, (it) => `Username for ${it}`],
  ["an app's token of Slack", `xapp-1-${"A1b".repeat(6)}`, (it) => `socket ${it}`],
  ["a hook of Slack", random(), (it) => `POST https://hooks.example/services/T0ABCDEFG/B0ABCDEFG/${it}`],
  ["a token of npm", `npm_${"a1B2".repeat(9)}`, (it) => `npm error 401 ${it}`],
  ["a token of PyPI", `pypi-${random()}${random()}`, (it) => `uploading with ${it}`],
  ["a token of a model hub", `hf_${"a1B2".repeat(9)}`, (it) => `hub: ${it}`],
  ["a key of Google", `AIza${"a1B2x".repeat(7)}`, (it) => `maps?q=1 ${it}`],
  ["a session token of AWS", random(), (it) => `AWS_SESSION_TOKEN=${it}`],
  [
    "a signature of AWS",
    random(),
    (it) => `Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=${it}`,
  ],
  ["an answer to Digest", random(), (it) => `Authorization: Digest username="u", nonce="n", response="${it}"`],
  ["a scheme of a service's own", random(), (it) => `Authorization: ApiKey ${it}`],
  ["a header of curl", random(), (it) => `curl -H 'Authorization: Bearer ${it}' -H "X-API-Key: ${it}" https://h`],
  ["a user of curl", random(), (it) => `curl -sS -u admin:${it} https://h && curl --user "admin:${it}" https://h`],
  ["a cookie of curl", random(), (it) => `curl --cookie 'session=${it}' https://h`],
  ["a cookie in quotes", random(), (it) => `Cookie: a=1; session="${it}"; b=2`],
  ["cookies in JSON", random(), (it) => JSON.stringify({ request: { cookies: { session: it } } })],
  ["a token as the user of a URL", `1${random()}`, (it) => `git clone https://${it}@git.example.org/a.git`],
  ["a password with an address behind", random(), (it) => `redis://:${it}@10.0.0.1:6379/0`],
  ["a setting with every character", random(), (it) => `DATABASE_PASSWORD=a,b;c ${it}) "x`],
  ["an environment in a list", random(), (it) => JSON.stringify({ Env: [`PGPASSWORD=a ${it}`, "PATH=/bin"] })],
  ["an environment by name and value", random(), (it) => JSON.stringify({ env: [{ name: "DB_PASSWORD", value: it }] })],
  ["an environment of a process", random(), (it) => `PATH=/bin\0MYSQL_PWD=${it}\0HOME=/root`],
  ["the words of a command", random(), (it) => JSON.stringify({ Cmd: ["psql", "--password", it, "--host", "db"] })],
  ["an option in quotes", random(), (it) => `login --token "a ${it}" --host db`],
  ["a line of ps", random(), (it) => `root 1 0.0 mysqldump -u root -p${it} svc`],
  ["sshpass", random(), (it) => `sshpass -p ${it} ssh root@10.0.0.1`],
  [".npmrc", random(), (it) => `//packages.test/:_authToken=${it}\nalways-auth=true`],
  [".npmrc with a log-in", base64(`svc:${random()}`), (it) => `//packages.test/:_auth=${it}`],
  [
    "Docker's config.json",
    base64(`svc:${random()}`),
    (it) => JSON.stringify({ auths: { "r.example.org": { auth: it } } }),
  ],
  [
    "Docker's config.json that is cut",
    base64(`svc:${random()}`),
    (it) => `{"auths": {"r.example.org": {"auth": "${it}"`,
  ],
  ["an identity of Docker", random(), (it) => JSON.stringify({ auths: { r: { identitytoken: it } } })],
  ["a kubeconfig", random(), (it) => `users:\n- name: a\n  user:\n    client-key-data: ${it}\n    token: ${it}`],
  [
    "a secret of Kubernetes",
    random(),
    (it) => `data:\n  password: ${base64(it)}\nkind: Secret\nname: ${"x".repeat(3)}`,
  ],
  ["YAML of several lines", random(), (it) => `client_secret: |\n  ${it}\n  ${it}\nname: x`],
  [".netrc", random(), (it) => `machine api.example.org login svc password ${it}`],
  [".netrc of several lines", random(), (it) => `machine api.example.org\n  login svc\n  password ${it}\n`],
  ["the key of an account of Azure", random(), (it) => `AccountName=a;AccountKey=${it}==;EndpointSuffix=x`],
  [
    "a key of PGP",
    random(),
    (it) => `-----BEGIN PGP PRIVATE KEY BLOCK-----\n${it}\n-----END PGP PRIVATE KEY BLOCK-----`,
  ],
  [
    "a key of OpenSSH",
    random(),
    (it) => `-----BEGIN OPENSSH PRIVATE KEY-----\n${it}\n-----END OPENSSH PRIVATE KEY-----`,
  ],
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
  ["svc/base:ee310ab9cd43 sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b 87b39537"],
  ['{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","snapshotId":"0b8f6a0e-5a53-4a0e-9a53-0b8f6a0e5a53","key":null}'],
  ["docker run -u 1000:1000 --user 0:0 svc/base sh; chown 990:990 /etc/svc/admin-token; ssh -p 2222 git@10.0.0.1"],
  ["GET http://10.0.0.1:3000/users?mail=a@example.org and ssh://git@git.example.org/a.git"],
  ["node-1: authentication by certificate, auth=certificate-of-node, PWD=/root, OLDPWD=/work"],
  ["curl -sS -m 20 -H 'Accept: text/plain' -o /dev/null https://api.example.org/services/list"],
  ["integrity: sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng=="],
  ['{"container":"svc-isb6f3b4nz","name":"svc-isb6f3b4nz","value":3,"args":["sleep","--name","x"]}'],
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
  ["MYSQL_PWD", true],
  ["client-key-data", true],
  ["cookies", true],
  ["AccountKey", true],
  ["PWD", false],
  ["auth", false],
  ["client-certificate-data", false],
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
