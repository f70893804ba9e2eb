/** How this edge meets its orchestrators: with the certificate of a join, or over loopback with the token of the settings. */

import { edgeAuthorityApi } from "../../../shared/agent-api/joining/authority-shapes.ts";
import { edgeJoinApi, edgeMemberApi } from "../../../shared/agent-api/joining/edge-join-shapes.ts";
import { readJoinToken } from "../../../shared/agent-api/joining/join-token.ts";
import { connect } from "../../../shared/http/client.ts";
import { authorityAt } from "../../../shared/http/connections/first-meeting.ts";
import { AppError, isError } from "../../../shared/http/errors.ts";
import { ConfigError } from "../../../shared/program/config.ts";
import type { Log } from "../../../shared/program/log.ts";
import { loop } from "../../../shared/program/loop.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import { withIssuerFirst } from "../../../shared/tls/bundle.ts";
import { type Credentials, factsOf, problemOf, renewalAt } from "../../../shared/tls/credentials.ts";
import { followStep, saidBy } from "../../../shared/tls/follow.ts";
import { type LiveCredentials, liveCredentials } from "../../../shared/tls/live.ts";
import { EDGE, ORCHESTRATOR } from "../../../shared/tls/names.ts";
import type { Meeting } from "../../../shared/tls/peers.ts";
import { requestFor } from "../../../shared/tls/request.ts";
import { type EdgeConfig, orchestratorsOf } from "./config.ts";
import { type EdgeFiles, edgeFiles } from "./membership.ts";

const CALL_LIMIT_MS = 30_000;
const LOOK_EVERY_MS = 60_000;
/** Answers of one round: new authorities, the renewed certificate, and that all is known. */
const MOST_STEPS = 3;
/** A failure is tried again each minute and logged once an hour. */
const LOG_EVERY = 60;

type JoinConfig = Pick<EdgeConfig, "edgeStateDir" | "edgeId" | "orchestratorUrl" | "joinToken" | "edgeToken">;

interface JoinDeps {
  readonly now: () => number;
  readonly log: Log;
}

/** Undefined: this machine has not joined, and goes by the token of the settings. @throws {ConfigError} with what to do */
export async function openMembership(config: JoinConfig, deps: JoinDeps): Promise<LiveCredentials | undefined> {
  const kept = usable(config);
  if (kept === undefined && config.joinToken !== undefined)
    return liveCredentials(await joinAsEdge(config, config.joinToken, deps));
  checkWay(config, kept);
  if (kept === undefined) return undefined;
  const problem = problemOf(kept, { as: EDGE, at: deps.now() });
  // It starts all the same: a clock may be set after the start, and its nodes may still take it.
  if (problem !== undefined)
    deps.log.error({ edgeId: config.edgeId }, `the platform will not take this edge: ${problem}`);
  return liveCredentials(kept);
}

/** Whether an edge could start with these settings. @throws {ConfigError} */
export function checkMembership(config: JoinConfig): void {
  const kept = usable(config);
  if (kept === undefined && config.joinToken !== undefined) checkHttps(config);
  else checkWay(config, kept);
}

function checkWay(config: JoinConfig, kept: Credentials | undefined): void {
  if (kept !== undefined) checkHttps(config);
  else if (orchestratorsOf(config).some((url) => url.startsWith("https:")))
    throw new ConfigError(["SVC_ORCHESTRATOR_URL is https, and this machine has not joined: edge --join TOKEN"]);
  else if (config.edgeToken === undefined)
    throw new ConfigError([
      "SVC_EDGE_TOKEN is required on the orchestrator's machine (orchestrator --edge-token prints it); any other machine joins with a token: edge --join TOKEN",
    ]);
}

function checkHttps(config: JoinConfig): void {
  const plain = orchestratorsOf(config).filter((url) => !url.startsWith("https:"));
  if (plain.length === 0) return;
  throw new ConfigError(
    plain.map(
      (url) =>
        `SVC_ORCHESTRATOR_URL ${url} is not an orchestrator's address for edges that join: it begins with https:// and has the port of SVC_NODES_PORT`,
    ),
  );
}

/** What the join has left. @throws {ConfigError} when only a new join helps */
function usable(config: JoinConfig): Credentials | undefined {
  const files = edgeFiles(config.edgeStateDir);
  const kept = files.read();
  if (kept === undefined) return undefined;
  const problem = problemOf(kept, { as: EDGE, at: timeWithin(kept) });
  if (problem === undefined) return kept;
  if (config.joinToken !== undefined) return undefined;
  throw new ConfigError([`${files.directory} is of no use to this edge: ${problem}`]);
}

/** A moment of the certificate's time, to find problems other than those of the clock. */
function timeWithin({ certificate }: Credentials): number {
  try {
    return factsOf(certificate).from + 1_000;
  } catch {
    return 0;
  }
}

/** Joins with the token, keeps the certificate, and resolves with it. @throws {ConfigError} with what to do */
export async function joinAsEdge(config: JoinConfig, token: string, { now, log }: JoinDeps): Promise<Credentials> {
  checkHttps(config);
  const files = edgeFiles(config.edgeStateDir);
  const { edgeId } = config;
  try {
    const credentials = await join(orchestratorsOf(config)[0] ?? "", { token, edgeId, key: await files.key(), now });
    files.write(credentials);
    log.info({ edgeId, until: untilOf(credentials) }, "this machine has joined the platform as an edge");
    return credentials;
  } catch (error) {
    if (error instanceof AppError || error instanceof RangeError)
      throw new ConfigError([`this machine did not join the platform: ${error.message}`]);
    throw error;
  }
}

async function join(
  url: string,
  {
    token,
    edgeId,
    key,
    now,
  }: { readonly token: string; readonly edgeId: string; readonly key: string; readonly now: () => number },
): Promise<Credentials> {
  const { digest, id: tokenId, secret } = readJoinToken(token);
  const authority = await authorityAt(url, digest);
  const meeting = { credentials: { current: { authority } }, expects: ORCHESTRATOR };
  const connection = connect(edgeJoinApi, { url, name: "the orchestrator", meeting });
  try {
    const body = { tokenId, secret, edgeId, request: await requestFor(key), at: now() };
    const { certificate } = await connection.call.joinEdge({ body }, { timeoutMs: CALL_LIMIT_MS });
    return checked({ authority, certificate, key }, now());
  } finally {
    await connection.close();
  }
}

function checked(credentials: Credentials, at: number): Credentials {
  const problem = problemOf(credentials, { as: EDGE, at });
  if (problem === undefined) return credentials;
  throw new AppError("failed_precondition", `the platform's answer is of no use: ${problem}`);
}

export function meetingOf(credentials: LiveCredentials): Meeting {
  return { credentials, expects: ORCHESTRATOR };
}

/**
 * Changes the certificate for a fresh one when two thirds of its time have passed, at whichever orchestrator answers, and follows the
 * platform's authority when that is replaced.
 */
export function startEdgeRenewal(
  credentials: LiveCredentials,
  config: JoinConfig,
  {
    now,
    log,
    teardown,
    everyMs = LOOK_EVERY_MS,
  }: JoinDeps & {
    readonly teardown: Teardown;
    /** For tests. */
    readonly everyMs?: number;
  },
): void {
  const files: EdgeFiles = edgeFiles(config.edgeStateDir);
  const orchestrators = orchestratorsOf(config).map((url) =>
    connect(
      { ...edgeMemberApi, ...edgeAuthorityApi },
      { url, name: "the orchestrator", meeting: meetingOf(credentials) },
    ),
  );
  teardown.add("connections for renewals", () => Promise.all(orchestrators.map((each) => each.close())));

  /** At the first orchestrator that answers. */
  async function atAny<T>(ask: (call: (typeof orchestrators)[number]["call"]) => Promise<T>): Promise<T> {
    let failure: unknown;
    for (const { call } of orchestrators) {
      try {
        return await ask(call);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  function take(next: Credentials): void {
    // The disk first: an edge that ends now must not start with a certificate that ends sooner.
    files.write(next);
    credentials.replace(next);
  }

  async function renew(signal: AbortSignal): Promise<void> {
    const { authority, key } = credentials.current;
    const body = { request: await requestFor(key) };
    await atAny(async (call) => {
      const { certificate } = await call.renewEdge({ body }, { signal, timeoutMs: CALL_LIMIT_MS });
      take(checked({ authority: withIssuerFirst(authority, certificate), certificate, key }, now()));
    });
    log.info({ edgeId: config.edgeId, until: untilOf(credentials.current) }, "renewed this edge's certificate");
  }

  /** Says what this edge trusts, and takes over what it is told, until nothing changes. */
  async function follow(signal: AbortSignal): Promise<void> {
    try {
      for (let step = 0; step < MOST_STEPS; step++) {
        const body = saidBy(credentials.current);
        const told = await atAny((call) => call.edgeAuthorities({ body }, { signal, timeoutMs: CALL_LIMIT_MS }));
        const { credentials: next, renew: isDue } = followStep(credentials.current, told);
        if (next !== undefined) take(next);
        if (isDue) await renew(signal);
        if (next === undefined && !isDue) return;
      }
    } catch (error) {
      // An orchestrator of an earlier version replaces no authority.
      if (isError(error, "not_found") || signal.aborted) return;
      log.debug({ err: error }, "could not ask for the platform's authorities");
    }
  }

  let failures = 0;
  const renewing = loop({ name: "certificate of this edge", everyMs, log }, async (signal) => {
    await follow(signal);
    const facts = factsOf(credentials.current.certificate);
    if (now() < renewalAt(facts)) return;
    try {
      await renew(signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted || failures++ % LOG_EVERY !== 0) return;
      const until = untilOf(credentials.current);
      if (now() < facts.until) log.warn({ err: error, until }, "could not renew this edge's certificate yet");
      else
        log.error({ err: error, until }, "this edge's certificate has ended: join the platform again with a new token");
    }
  });
  teardown.add("renewal of the certificate", () => renewing.stop());
}

function untilOf({ certificate }: Credentials): string {
  return new Date(factsOf(certificate).until).toISOString();
}
