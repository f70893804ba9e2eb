/** Exchanges AWS credentials for a registry password: one signed call (GetAuthorizationToken of ECR). */

import { AwsV4Signer } from "aws4fetch";
import { request } from "undici";
import { AppError } from "../../../shared/http/errors.ts";
import { within } from "../../../shared/program/deadline.ts";

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

export interface EcrOptions {
  /** Replaces the address of AWS in tests. */
  readonly endpoint?: string;
  readonly now: () => number;
}

const TARGET = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken";
const BODY = "{}";
const LIMIT_MS = 15_000;

/** @throws {AppError} bad_request when AWS refuses; the message holds no secret */
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
    const headers = await signedHeaders(keys, url, new Date(now()));
    [status, text] = await within(LIMIT_MS, async (limit) => {
      const either = AbortSignal.any([signal, limit]);
      const { statusCode, body } = await request(url, { method: "POST", headers, body: BODY, signal: either });
      return [statusCode, await body.text()] as const;
    });
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

/** Signs this one call with AWS Signature Version 4, for one moment. */
export async function signedHeaders(keys: AwsKeys, url: URL, at: Date): Promise<Record<string, string>> {
  const signer = new AwsV4Signer({
    ...keys,
    service: "ecr",
    method: "POST",
    url: url.href,
    headers: { "content-type": "application/x-amz-json-1.1", "x-amz-target": TARGET },
    body: BODY,
    allHeaders: true,
    datetime: at.toISOString().replaceAll(/[-:]|\.\d{3}/g, ""),
  });
  return Object.fromEntries((await signer.sign()).headers);
}
