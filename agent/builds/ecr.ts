/** Credentials of AWS → a password of its registry: one signed call (GetAuthorizationToken of ECR). */

import { createHash, createHmac } from "node:crypto";
import { request } from "undici";
import { anySignal } from "../../shared/any-signal.ts";
import { AppError } from "../../shared/errors.ts";

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

export interface EcrOptions {
  /** In the place of AWS, for tests. */
  readonly endpoint?: string;
  readonly now: () => number;
}

const TARGET = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken";
const BODY = "{}";
const LIMIT_MS = 15_000;

/** @throws {AppError} bad_request when AWS refuses, without anything secret in it */
export async function ecrPassword(
  keys: AwsKeys,
  { endpoint, now }: EcrOptions,
  signal: AbortSignal,
): Promise<{ username: string; password: string }> {
  if (!/^[a-z0-9-]{1,40}$/.test(keys.region)) throw new AppError("bad_request", "the AWS region is not valid");
  const suffix = keys.region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  const url = new URL(endpoint ?? `https://api.ecr.${keys.region}.${suffix}/`);
  let status: number;
  let text: string;
  try {
    const response = await request(url, {
      method: "POST",
      headers: signedHeaders(keys, url.host, new Date(now())),
      body: BODY,
      signal: anySignal(signal, AbortSignal.timeout(LIMIT_MS)),
    });
    status = response.statusCode;
    text = await response.body.text();
  } catch (cause) {
    signal.throwIfAborted();
    throw new AppError("bad_request", "AWS does not answer: no password for its registry", { cause });
  }
  const token = status === 200 ? tokenIn(text) : undefined;
  if (token === undefined)
    throw new AppError("bad_request", `AWS refuses the credentials of the registry (status ${status})`);
  const [username = "", password = ""] = Buffer.from(token, "base64").toString("utf8").split(/:(.*)/s);
  return { username, password };
}

function tokenIn(text: string): string | undefined {
  try {
    const { authorizationData } = JSON.parse(text) as { authorizationData?: { authorizationToken?: unknown }[] };
    const token = authorizationData?.[0]?.authorizationToken;
    return typeof token === "string" ? token : undefined;
  } catch {
    return undefined;
  }
}

/** AWS Signature Version 4 of this one call. */
export function signedHeaders(keys: AwsKeys, host: string, at: Date): Record<string, string> {
  const time = at.toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const date = time.slice(0, 8);
  const headers = {
    "content-type": "application/x-amz-json-1.1",
    host,
    "x-amz-date": time,
    "x-amz-target": TARGET,
  };
  const names = Object.keys(headers).join(";");
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const canonical = ["POST", "/", "", lines.join(""), names, sha256(BODY)].join("\n");
  const scope = `${date}/${keys.region}/ecr/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  const key = [date, keys.region, "ecr", "aws4_request"].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    `AWS4${keys.secretAccessKey}`,
  );
  const signature = hmac(key, toSign).toString("hex");
  const credential = `${keys.accessKeyId}/${scope}`;
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
