import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { signFile } from "../../../envd/files/signature.ts";
import { toEnd } from "./process/following.ts";
import { as, clientsOf, type RunningEnvd, runEnvd } from "./running-envd.ts";

const CONTROL = { "svc-node-token": "node-secret" };
const TOKEN = "sandbox-secret";
const WITH_TOKEN = { "x-access-token": TOKEN };
const UNAUTHORIZED = {
  code: 401,
  message: "unauthorized access, please provide a valid access token or method signing if supported",
};

let envd: RunningEnvd;
const call = async (path: string, options: RequestInit = {}) => {
  const response = await fetch(`${envd.url}${path}`, options);
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : (JSON.parse(text) as unknown),
  };
};
const init = (body: object, headers: Record<string, string> = CONTROL) =>
  call("/init", { method: "POST", body: JSON.stringify(body), headers });
const script = (text: string) => ({ process: { cmd: "/bin/sh", args: ["-c", text], envs: {} }, stdin: false });

describe("with the node's token", () => {
  beforeEach(async () => {
    envd = await runEnvd({ controlToken: "node-secret" });
  });
  afterEach(() => envd.stop());

  test("every route is open until a token is set, and needs the token from then on", async () => {
    expect((await call("/metrics")).status).toBe(200);
    expect((await init({ accessToken: TOKEN })).status).toBe(204);
    for (const path of ["/metrics", "/envs"]) {
      expect(await call(path)).toMatchObject({ status: 401, body: UNAUTHORIZED });
      expect((await call(path, { headers: { "x-access-token": "wrong" } })).status).toBe(401);
      expect((await call(path, { headers: WITH_TOKEN })).status).toBe(200);
    }
    expect((await call("/files/compose", { method: "POST" })).body).toEqual(UNAUTHORIZED);
    expect((await call("/health")).status).toBe(204);
  });

  test("calls without a token are refused in words the clients show", async () => {
    await init({ accessToken: TOKEN });
    const { process, filesystem } = clientsOf(envd.url);
    await expect(filesystem.stat({ path: "/" })).rejects.toMatchObject({
      code: Code.Unauthenticated,
      rawMessage: UNAUTHORIZED.message,
    });
    await expect(toEnd(process.start(script("true")))).rejects.toMatchObject({ code: Code.Unauthenticated });
    expect((await toEnd(process.start(script("echo in"), as("user", WITH_TOKEN)))).stdout.toString()).toBe("in\n");
  });

  test("only the node may initialise, read logs, warm up or tunnel", async () => {
    for (const headers of [{}, WITH_TOKEN, { "svc-node-token": "wrong" }]) {
      expect((await init({ accessToken: TOKEN }, headers)).status).toBe(401);
      expect((await call("/logs", { headers })).status).toBe(401);
      for (const path of ["/warm", "/watches/suspend", "/watches/resume"])
        expect((await call(path, { method: "POST", headers })).status).toBe(401);
    }
    expect((await call("/logs", { headers: CONTROL })).status).toBe(200);
  });

  test("the node can set another token, and the old one is refused from then on", async () => {
    await init({ accessToken: TOKEN });
    await init({ accessToken: "next" });
    expect((await call("/envs", { headers: WITH_TOKEN })).status).toBe(401);
    expect((await call("/envs", { headers: { "x-access-token": "next" } })).status).toBe(200);
  });

  test("/init replaces the variables, and the sandbox's own are always set, as variables and as files", async () => {
    await init({
      envVars: { A: "1", E2B_SANDBOX_ID: "forged" },
      sandboxId: "i123",
      templateId: "base",
      defaultWorkdir: "/tmp",
    });
    expect((await call("/envs")).body).toMatchObject({
      A: "1",
      E2B_SANDBOX_ID: "i123",
      SVC_TEMPLATE_ID: "base",
      E2B_SANDBOX: "true",
    });
    const { process } = clientsOf(envd.url);
    expect((await toEnd(process.start(script("echo $A $E2B_SANDBOX_ID; pwd")))).stdout.toString()).toBe(
      "1 i123\n/tmp\n",
    );
    await init({ envVars: { B: "2" }, sandboxId: "i123" });
    expect((await toEnd(process.start(script("echo $A$B")))).stdout.toString()).toBe("2\n");
    expect(readFileSync(join(envd.root, "run/e2b/.E2B_SANDBOX_ID"), "utf8")).toBe("i123");
    expect(readFileSync(join(envd.root, "run/svc/.SVC_TEMPLATE_ID"), "utf8")).toBe("base");
  });

  test("an older request changes nothing, also when many come at once", async () => {
    const when = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
    const replies = await Promise.all(
      [3, 1, 5, 2, 4].map((n) => init({ timestamp: when(n), envVars: { N: String(n) } })),
    );
    expect(replies.map(({ status }) => status)).toEqual([204, 204, 204, 204, 204]);
    expect((await call("/envs")).body).toMatchObject({ N: "5" });
    await init({ timestamp: when(4), envVars: { N: "stale" } });
    expect((await call("/envs")).body).toMatchObject({ N: "5" });
    await init({ timestamp: when(5), envVars: { N: "same moment" } });
    expect((await call("/envs")).body).toMatchObject({ N: "same moment" });
  });

  test("a certificate is trusted from then on", async () => {
    mkdirSync(join(envd.root, "etc/ssl/certs"), { recursive: true });
    writeFileSync(join(envd.root, "etc/ssl/certs/ca-certificates.crt"), "other\n");
    await init({ caBundle: "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n" });
    expect(readFileSync(join(envd.root, "etc/ssl/certs/ca-certificates.crt"), "utf8")).toMatch(
      /^other\n# svc: begin\n[^#]*ours[^#]*# svc: end\n$/,
    );
  });

  test("commands get the certificate in their environment unless it names one already, and not after its removal", async () => {
    const { process } = clientsOf(envd.url);
    const told = async (envs: Record<string, string> = {}) => {
      const command = { process: { cmd: "/bin/sh", args: ["-c", "echo $NODE_EXTRA_CA_CERTS $SSL_CERT_FILE"], envs } };
      return (await toEnd(process.start({ ...command, stdin: false }))).stdout.toString().trim();
    };
    const put = (caBundle: string) =>
      call("/ca-bundle", { method: "PUT", headers: CONTROL, body: JSON.stringify({ caBundle }) });
    const path = "/etc/ssl/certs/ca-certificates.crt";
    await init({ envVars: { A: "1" } });
    expect(await told()).toBe("");
    expect((await put("-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n")).status).toBe(204);
    expect(await told()).toBe(`/run/svc/ca.pem ${path}`);
    expect(await told({ SSL_CERT_FILE: "/mine" })).toBe("/run/svc/ca.pem /mine");
    expect((await call("/envs")).body).toMatchObject({ A: "1" });
    // This init has no `caBundle`: it replaces everything else, and the bundle stays.
    await init({ envVars: { NODE_EXTRA_CA_CERTS: "/theirs" } });
    expect(await told()).toBe(`/theirs ${path}`);
    await init({ caBundle: "" });
    expect(await told()).toBe("");
    expect((await call("/ca-bundle", { method: "PUT", body: "{}" })).status).toBe(401);
    expect((await call("/ca-bundle", { method: "PUT", headers: CONTROL, body: "{}" })).status).toBe(400);
  });

  test("a default user that the image lacks fails when it is used", async () => {
    await init({ defaultUser: "ghost" });
    await expect(toEnd(clientsOf(envd.url).process.start(script("true")))).rejects.toMatchObject({
      rawMessage: "invalid username: 'ghost'",
    });
  });

  test.each([
    ["not json", "the body is not JSON"],
    ["[]", "the body is not a JSON object"],
    ['{"envVars":{"A":1}}', "envVars.A must be a text"],
  ])("a body %s is refused", async (body, message) => {
    expect(await call("/init", { method: "POST", headers: CONTROL, body })).toMatchObject({
      status: 400,
      body: { code: 400, message },
    });
  });

  test("log entries are read in order, and a reader can continue where it stopped", async () => {
    const { process } = clientsOf(envd.url);
    await toEnd(process.start(script("echo first line; echo error line >&2; exit 2"), as("user")));
    const page = async (after: number) =>
      (await call(`/logs?after=${after}`, { headers: CONTROL })).body as {
        entries: { message: string; fields: Record<string, unknown> }[];
        next: number;
      };
    await expect.poll(async () => (await page(0)).entries.at(-1)?.message).toBe("process ended");
    const { entries, next } = await page(0);
    expect(entries.map(({ message }) => message)).toEqual(
      expect.arrayContaining(["process started", "first line", "error line"]),
    );
    expect(entries.at(-1)?.fields).toMatchObject({ exitCode: 2 });
    expect(await page(next)).toEqual({ entries: [], next });
    expect((await call("/logs?after=x", { headers: CONTROL })).status).toBe(400);
  });

  test("warming up leaves no trace", async () => {
    expect((await call("/warm", { method: "POST", headers: CONTROL })).status).toBe(204);
    expect((await call("/logs", { headers: CONTROL })).body).toEqual({ entries: [], next: 0 });
    expect((await clientsOf(envd.url).process.list({})).processes).toEqual([]);
    expect((await call("/envs")).body).toEqual({ E2B_SANDBOX: "true", SVC_SANDBOX: "true" });
  });

  test("the file with the sandbox's id is replaced completely, after a warm-up and by a shorter or longer id", async () => {
    const file = join(envd.root, "run/svc/.SVC_SANDBOX_ID");
    expect((await call("/warm", { method: "POST", headers: CONTROL })).status).toBe(204);
    for (const sandboxId of ["short", "i0123456789abcdefghi", "longer than any identifier is", "i1"]) {
      await init({ sandboxId });
      expect(readFileSync(file, "utf8")).toBe(sandboxId);
    }
  });

  test("the file with the execution's id changes in place at each start, and keeps its last id when an init names none", async () => {
    const file = join(envd.root, "run/svc/execution-id");
    expect((await call("/warm", { method: "POST", headers: CONTROL })).status).toBe(204);
    const { ino } = statSync(file);
    for (const executionId of [randomUUID(), randomUUID(), "short"]) {
      await init({ sandboxId: "i1", executionId });
      // A program that holds the file open sees the change.
      expect([readFileSync(file, "utf8"), statSync(file).ino]).toEqual([`${executionId}\n`, ino]);
    }
    await init({ sandboxId: "i1" });
    expect(readFileSync(file, "utf8")).toBe("short\n");
  });
});

describe("without a node's token", () => {
  beforeEach(async () => {
    envd = await runEnvd({ now: () => 1_800_000_000_000 });
  });
  afterEach(() => envd.stop());

  test("only a caller with the sandbox's token may initialise again", async () => {
    expect((await init({ accessToken: TOKEN }, {})).status).toBe(204);
    expect((await init({ accessToken: "other" }, {})).status).toBe(401);
    expect((await init({}, {})).status).toBe(401);
    expect((await init({ accessToken: TOKEN }, {})).status).toBe(204);
    expect((await call("/logs")).status).toBe(401);
    expect((await call("/logs", { headers: WITH_TOKEN })).status).toBe(200);
  });

  describe("a signed file URL", () => {
    const signed = (
      change: Record<string, string | undefined> = {},
      operation: "read" | "write" = "read",
      expiration?: string,
    ) => {
      const path = join(envd.home, "a+b c.txt");
      const signature = signFile({ path, operation, username: "user", expiration }, TOKEN);
      const query: Record<string, string | undefined> = {
        path,
        username: "user",
        signature,
        signature_expiration: expiration,
        ...change,
      };
      const search = new URLSearchParams();
      for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, value);
      return `/files?${search.toString()}`;
    };
    beforeEach(async () => {
      await init({ accessToken: TOKEN }, {});
      writeFileSync(join(envd.home, "a+b c.txt"), '"content"');
    });

    test("reads and writes without a token", async () => {
      expect(await call(signed())).toMatchObject({ status: 200, body: "content" });
      const headers = { "content-type": "application/octet-stream" };
      expect((await call(signed({}, "write"), { method: "POST", headers, body: '"new"' })).status).toBe(200);
      expect(await call(signed({}, "read", "1800000001"))).toMatchObject({ status: 200, body: "new" });
    });

    test.each([
      ["no signature", { signature: undefined }, undefined, "missing signature query parameter"],
      ["a wrong one", { signature: "v1_x" }, undefined, "invalid signature"],
      ["one for another path", { path: "/etc/shadow" }, undefined, "invalid signature"],
      ["an expired one", {}, "1799999999", "signature is already expired"],
    ])("with %s is answered with 401 and the reason", async (_, change, expiration, message) => {
      expect(await call(signed(change, "read", expiration))).toMatchObject({
        status: 401,
        body: { code: 401, message },
      });
    });

    test("a reading signature does not write", async () => {
      expect(await call(signed(), { method: "POST", body: "x" })).toMatchObject({
        status: 401,
        body: { message: "invalid signature" },
      });
    });

    test("a wrong token is refused even with a right signature; the right token needs no signature", async () => {
      const wrong = { headers: { "x-access-token": "wrong" } };
      expect(await call(signed(), wrong)).toMatchObject({
        status: 401,
        body: { message: "access token present in header but does not match" },
      });
      expect((await call(signed({ signature: undefined }), { headers: WITH_TOKEN })).status).toBe(200);
    });

    test("the signature is checked before the file", async () => {
      const path = `${envd.home}/missing`;
      const signature = signFile({ path, operation: "read", username: "", expiration: undefined }, TOKEN);
      expect(await call(`/files?${new URLSearchParams({ path, signature }).toString()}`)).toMatchObject({
        status: 404,
        body: { message: `path '${path}' does not exist` },
      });
    });
  });
});
