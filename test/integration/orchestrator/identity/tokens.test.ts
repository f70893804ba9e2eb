/** Workload identity tokens as a verifier outside sees them: it knows the issuer's address, and reads the rest from there. */

import { createHmac, createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  calculateJwkThumbprint,
  createRemoteJWKSet,
  decodeProtectedHeader,
  generateKeyPair,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from "jose";
import * as client from "openid-client";
import { describe, expect, onTestFinished, test } from "vitest";
import { newUuid } from "../../../../shared/ids.ts";
import { sandboxRecord } from "../../../support/store/sandbox-records.ts";
import { AUDIENCE, type Issuer, MINUTE, SANDBOX, startIssuer } from "./issuer.ts";

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** What a cloud does that trusts the issuer: discovery, the key set over HTTP, then signature, issuer, audience and times. */
async function accepts({ url, clock }: Issuer, token: string, audience = AUDIENCE): Promise<JWTPayload> {
  const found = await client.discovery(new URL(url), audience, undefined, undefined, {
    execute: [client.allowInsecureRequests],
  });
  const { issuer, jwks_uri: jwks = "", id_token_signing_alg_values_supported: algorithms } = found.serverMetadata();
  const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(jwks)), {
    issuer,
    audience,
    algorithms: algorithms as string[],
    currentDate: new Date(clock.at),
    requiredClaims: ["sub", "exp", "iat", "nbf", "jti"],
  });
  return payload;
}

describe.each(["ES256", "EdDSA"] as const)("a token signed with %s", (identityAlgorithm) => {
  test("is verified from the discovery document, and says which sandbox asks", async () => {
    const issuer = await startIssuer({ config: { identityAlgorithm } });
    const made = await issuer.tokens.tokenFor(SANDBOX, "aws");
    const token = made?.value ?? "";
    const at = Math.floor(issuer.clock.at / 1000);
    expect(await accepts(issuer, token)).toEqual({
      iss: issuer.url,
      sub: `spiffe://127.0.0.1/project/${SANDBOX.projectId}/template/template1/sandbox/isandbox1`,
      aud: AUDIENCE,
      iat: at,
      nbf: at - 30,
      exp: at + 600,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      project_id: SANDBOX.projectId,
      template_id: "template1",
      sandbox_id: "isandbox1",
      execution_id: SANDBOX.executionId,
    });
    expect(made?.usableUntil).toBe((at + 600) * 1000);

    const [jwk] = (await issuer.jwks()).keys;
    const kid = await calculateJwkThumbprint(jwk as never);
    expect(decodeProtectedHeader(token)).toEqual({ alg: identityAlgorithm, kid, typ: "JWT" });
    expect(jwk).toMatchObject({ kid, alg: identityAlgorithm, use: "sig" });
    expect(jwk).not.toHaveProperty("d");
    // Without any library of tokens.
    const [header, payload, signature = ""] = token.split(".");
    const publicKey = createPublicKey({ key: jwk as never, format: "jwk" });
    const bytes = Buffer.from(signature, "base64url");
    const hash = identityAlgorithm === "ES256" ? "sha256" : null;
    const verified = verify(
      hash,
      Buffer.from(`${header}.${payload}`),
      { key: publicKey, dsaEncoding: "ieee-p1363" },
      bytes,
    );
    expect(verified).toBe(true);
  });

  test("is an ID token for an OpenID Connect client, which verifies it by the published keys", async () => {
    const issuer = await startIssuer({ config: { identityAlgorithm } });
    const token = await issuer.token();
    const answer = { access_token: "x", token_type: "bearer", id_token: token };
    const server = createServer((_request, response) =>
      response.setHeader("content-type", "application/json").end(JSON.stringify(answer)),
    );
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const documents = await client.discovery(new URL(issuer.url), AUDIENCE, undefined, client.None(), {
      execute: [client.allowInsecureRequests],
    });
    // The issuer has no endpoint for logins, so the test serves one that answers with the token.
    const found = JSON.parse(JSON.stringify(documents.serverMetadata())) as client.ServerMetadata;
    const metadata = {
      ...found,
      token_endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    };
    const config = new client.Configuration(metadata, AUDIENCE, undefined, client.None());
    client.allowInsecureRequests(config);
    client.enableNonRepudiationChecks(config);
    const exchanged = await client.authorizationCodeGrant(config, new URL("http://localhost/?code=any"), {
      idTokenExpected: true,
    });
    expect(exchanged.claims()?.["sandbox_id"]).toBe("isandbox1");
    answer.id_token = `${token.slice(0, -6)}AAAAAA`;
    const forged = client.authorizationCodeGrant(config, new URL("http://localhost/?code=any"), {
      idTokenExpected: true,
    });
    await expect(forged).rejects.toThrow();
  });
});

test("a token that is expired, foreign or changed is refused", async () => {
  const issuer = await startIssuer();
  const token = await issuer.token();
  const [header = "", payload = "", signature = ""] = token.split(".");
  const head = decodeProtectedHeader(token);
  const claims = await accepts(issuer, token);
  const [jwk] = (await issuer.jwks()).keys;
  const pem = createPublicKey({ key: jwk as never, format: "jwk" }).export({ type: "spki", format: "pem" });
  const foreign = (await generateKeyPair("ES256")).privateKey;
  const signedBy = (key: typeof foreign, over: object) =>
    new SignJWT({ ...claims }).setProtectedHeader({ ...head, alg: "ES256", ...over }).sign(key);
  const swapped = `${encoded({ ...head, alg: "HS256" })}.${payload}`;
  const hmac = (key: string) => createHmac("sha256", key).update(swapped).digest("base64url");

  const refused: Record<string, string> = {
    "another payload": `${header}.${encoded({ ...claims, sandbox_id: "iother" })}.${signature}`,
    "another signature": `${header}.${payload}.${encoded("x".repeat(60))}`,
    "no signature": `${header}.${payload}.`,
    "algorithm none": `${encoded({ ...head, alg: "none" })}.${payload}.`,
    "HS256 with the public key": `${swapped}.${hmac(pem as string)}`,
    "HS256 with the public JWK": `${swapped}.${hmac(JSON.stringify(jwk))}`,
    "another key under the same kid": await signedBy(foreign, {}),
    "another key under a kid of its own": await signedBy(foreign, { kid: "unknown" }),
  };
  for (const [name, forged] of Object.entries(refused)) {
    await expect(accepts(issuer, forged), name).rejects.toThrow();
  }
  await expect(accepts(issuer, token, "https://sts.example.com/")).rejects.toThrow("aud");
  // Another platform: its own keys, its own address.
  const other = await startIssuer();
  await expect(accepts(issuer, await other.token())).rejects.toThrow();
  await expect(accepts(other, token)).rejects.toThrow();

  issuer.clock.at += 10 * MINUTE + 1000;
  await expect(accepts(issuer, token)).rejects.toThrow("exp");
});

test("each sandbox has its own subject, a resumed one keeps it, and every token has an id of its own", async () => {
  const issuer = await startIssuer({
    config: {
      identityIssuer: "https://id.example.com/svc",
      identityTrustDomain: "prod.example",
      identityTokenMinutes: 1,
    },
  });
  const subject = async (over: Parameters<typeof sandboxRecord>[0]) => {
    const [, payload = ""] = (await issuer.token(sandboxRecord({ ...SANDBOX, ...over }))).split(".");
    return JSON.parse(Buffer.from(payload, "base64url").toString()) as JWTPayload;
  };
  const before = await subject({});
  expect(before).toMatchObject({
    iss: "https://id.example.com/svc",
    sub: `spiffe://prod.example/project/${SANDBOX.projectId}/template/template1/sandbox/isandbox1`,
  });
  expect((before.exp ?? 0) - (before.iat ?? 0)).toBe(60);
  const resumed = await subject({ executionId: newUuid() });
  expect(resumed.sub).toBe(before.sub);
  expect([resumed.jti, resumed["execution_id"]]).not.toContain(before.jti);
  expect((await subject({ id: "ifork" })).sub).toMatch(/\/sandbox\/ifork$/);
});

test("a sandbox has the tokens of its record and no others", async () => {
  const { tokens } = await startIssuer();
  expect(tokens.names(SANDBOX)).toEqual(new Set(["aws"]));
  expect(tokens.names(sandboxRecord())).toEqual(new Set());
  for (const name of ["gcp", "", "constructor", "__proto__", "toString"]) {
    expect(await tokens.tokenFor(SANDBOX, name), name).toBeUndefined();
  }
  expect(await tokens.tokenFor(sandboxRecord(), "aws")).toBeUndefined();
});

test("the documents are for every origin and may be kept for less time than a new key is published before it signs", async () => {
  const { url } = await startIssuer({ config: { identityPublishAheadMinutes: 2 } });
  for (const path of ["openid-configuration", "jwks.json"]) {
    const answer = await fetch(`${url}/.well-known/${path}`, { headers: { origin: "https://elsewhere.example" } });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=120");
    expect(answer.headers.get("content-type")).toContain("application/json");
  }
});
