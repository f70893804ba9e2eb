/** Makes this machine a node of a platform: finds the authority, makes a key, and changes the join token for a certificate. */

import { joinProof } from "../../shared/agent-api/joining/join-proof.ts";
import { joinApi } from "../../shared/agent-api/joining/join-shapes.ts";
import { type JoinToken, readJoinToken } from "../../shared/agent-api/joining/join-token.ts";
import { connect } from "../../shared/http/client.ts";
import { authorityAt } from "../../shared/http/connections/first-meeting.ts";
import { AppError } from "../../shared/http/errors.ts";
import { problemOf } from "../../shared/tls/credentials.ts";
import { nodeName, ORCHESTRATOR } from "../../shared/tls/names.ts";
import { digestOfRequest, requestFor } from "../../shared/tls/request.ts";
import { VERSION } from "../../shared/version.ts";
import type { Membership } from "./membership.ts";
import { isAway, urlsIn } from "./orchestrators.ts";

const CALL_LIMIT_MS = 30_000;

export interface JoinOptions {
  readonly token: string;
  /** The ports for nodes of the orchestrators: `https://…`, with commas between several. */
  readonly orchestratorUrl: string;
  readonly nodeId: string;
  /** Private, PEM. A repeated join must have the key of the first one. */
  readonly key: string;
  /** Agent API and node proxy, as the orchestrator will reach them: `https://…`. */
  readonly apiUrl: string;
  readonly proxyUrl: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What the node of this name sends to the orchestrator, where this machine has that in its settings. */
  readonly nodeToken?: string | undefined;
  /** Digests of the authorities that this machine has trusted since an earlier join. */
  readonly trusted?: readonly string[] | undefined;
  readonly now: () => number;
}

/** @throws {AppError} with a sentence that names what to do; RangeError for a text that is no join token */
export async function join(options: JoinOptions): Promise<Membership> {
  const token = readJoinToken(options.token);
  const urls = urlsIn(options.orchestratorUrl);
  const plain = urls.find((url) => !url.startsWith("https://"));
  if (plain !== undefined) {
    throw new AppError(
      "bad_request",
      `'${plain}' is not the orchestrator's address for nodes: it begins with https:// and has the port of SVC_NODES_PORT`,
    );
  }
  for (const url of urls.slice(0, -1)) {
    try {
      return await joinAt(url, token, options);
    } catch (error) {
      if (!isAway(error)) throw error;
    }
  }
  return joinAt(urls.at(-1) ?? "", token, options);
}

async function joinAt(orchestratorUrl: string, token: JoinToken, options: JoinOptions): Promise<Membership> {
  const { nodeId, key, apiUrl, proxyUrl, labels, nodeToken, now } = options;
  const { digest, id, secret } = token;
  const authority = await authorityAt(orchestratorUrl, digest, options.trusted);
  const connection = connect(joinApi, {
    url: orchestratorUrl,
    name: "the orchestrator",
    meeting: { credentials: { current: { authority } }, expects: ORCHESTRATOR },
  });
  try {
    const request = await requestFor(key);
    const claim = { tokenId: id, nodeId, keyDigest: await digestOfRequest(request) };
    const body = {
      tokenId: id,
      secret,
      nodeId,
      apiUrl,
      proxyUrl,
      labels: { ...labels },
      request,
      at: now(),
      version: VERSION,
      ...(nodeToken === undefined ? {} : { proof: joinProof(nodeToken, claim) }),
    };
    const { certificate, ...tokens } = await connection.call.join({ body }, { timeoutMs: CALL_LIMIT_MS });
    const credentials = { authority, certificate, key };
    const problem = problemOf(credentials, { as: nodeName(nodeId), at: now() });
    if (problem !== undefined)
      throw new AppError("failed_precondition", `the platform's answer is of no use: ${problem}`);
    return { credentials, ...tokens };
  } finally {
    await connection.close();
  }
}
