/** Handlers of join tokens, and of the join itself. */

import { createHash, randomBytes, randomInt } from "node:crypto";
import type { edgeJoinApi, edgeMemberApi } from "../../shared/agent-api/joining/edge-join-shapes.ts";
import { provesJoin } from "../../shared/agent-api/joining/join-proof.ts";
import type { joinApi, memberApi } from "../../shared/agent-api/joining/join-shapes.ts";
import { type JoinToken, joinTokenText } from "../../shared/agent-api/joining/join-token.ts";
import { nodeToken } from "../../shared/agent-api/joining/node-tokens.ts";
import type { edgesApi } from "../../shared/api/nodes/edges.ts";
import type { joinTokenApi } from "../../shared/api/nodes/join-tokens.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { factsOf } from "../../shared/tls/credentials.ts";
import { EDGE, nodeName } from "../../shared/tls/names.ts";
import { digestOfRequest } from "../../shared/tls/request.ts";
import type { NodeKeys } from "../base/keys/node-keys.ts";
import { iso } from "../forms/time.ts";
import type { MachineStore } from "../store/machines/machines.ts";
import type { JoinTokenRecord } from "../store/machines/record.ts";
import type { Authorities } from "./authority.ts";

const VALID_MS = 3_600_000;
/** Ends of sandboxes are times of the orchestrator that nodes keep by their own clock. */
const MOST_SKEW_MS = 60_000;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH = 12;
const SECRET_BYTES = 24;

/** @param authority undefined: the platform has no port for nodes */
export function createJoinTokenHandlers(
  store: MachineStore,
  authority: Pick<Authorities, "digestForJoin"> | undefined,
  now: () => number,
): Handlers<typeof joinTokenApi> {
  return {
    async createJoinToken({ body: { kind = "node" } }) {
      if (authority === undefined) {
        throw new AppError(
          "failed_precondition",
          "this platform has no port for other machines: set SVC_NODES_PORT and SVC_NODES_HOST, then run ./scripts/up",
        );
      }
      const digest = await authority.digestForJoin();
      const id = Array.from({ length: ID_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
      const secret = randomBytes(SECRET_BYTES).toString("base64url");
      const record = await store.addToken({ id, hash: hashOf(secret), expiresAt: now() + VALID_MS, kind });
      return { ...shown(record), token: joinTokenText({ digest, id, secret }) };
    },
    listJoinTokens: async () => (await store.listTokens()).map(shown),
    async revokeJoinToken({ params: { joinTokenID } }) {
      if (!(await store.revokeToken(joinTokenID))) {
        throw new AppError("not_found", `join token '${joinTokenID}' not found`);
      }
    },
  };
}

export interface JoinDeps {
  readonly store: Pick<MachineStore, "join" | "keyOf" | "joinEdge" | "noteRenewal">;
  readonly authority: Pick<Authorities, "sign">;
  /** The key that nodes' tokens are made from now. */
  readonly nodeKey: string;
  readonly nodeKeys: Pick<NodeKeys, "tokensFrom">;
  readonly now: () => number;
  readonly log: Log;
}

export function createJoinHandlers(deps: JoinDeps): Handlers<typeof joinApi> {
  const { store, authority, nodeKey, nodeKeys, now, log } = deps;
  return {
    async join({ body }) {
      const { tokenId, secret, nodeId, request, at, proof } = body;
      // Before the token is used, so that the machine can join with it when its clock is right.
      checkClock(at, now());
      const keyDigest = await keyIn(request);
      const isProved = provesJoin(proof, nodeKeys.tokensFrom(nodeId), { tokenId, nodeId, keyDigest });
      await store.join({ tokenId, hash: hashOf(secret), nodeId, keyDigest, isProved });
      log.info({ nodeId, tokenId, keyDigest, isProved }, "a machine joined as a node");
      return membershipOf(nodeId, request, { authority, nodeKey, now });
    },
  };
}

/** Whether a machine could join as a node with the token: for what it reads before it does. */
export function createTokenCheck(store: Pick<MachineStore, "checkToken">) {
  return ({ id, secret }: Pick<JoinToken, "id" | "secret">) => store.checkToken({ tokenId: id, hash: hashOf(secret) });
}

/** For a node that has shown its certificate. It stays the same node: only its own key gets a new certificate. */
export function createMemberHandlers({
  store,
  authority,
  nodeKey,
  now,
  log,
}: JoinDeps): Handlers<typeof memberApi, string> {
  return {
    async renew({ body: { request } }, { caller: nodeId }) {
      if ((await keyIn(request)) !== (await store.keyOf(nodeId))) {
        throw new AppError(
          "forbidden",
          `the request is for another key than node '${nodeId}' has joined with: a new key joins with a new token`,
        );
      }
      const membership = await membershipOf(nodeId, request, { authority, nodeKey, now });
      log.info({ nodeId }, "renewed the certificate of a node");
      await store.noteRenewal(nodeId, factsOf(membership.certificate).until).catch((error: unknown) => {
        log.warn({ err: error, nodeId }, "could not note that a node's certificate was renewed");
      });
      return membership;
    },
  };
}

export function createEdgeJoinHandlers(deps: JoinDeps): Handlers<typeof edgeJoinApi> {
  const { store, authority, now, log } = deps;
  return {
    async joinEdge({ body: { tokenId, secret, edgeId, request, at } }) {
      checkClock(at, now());
      const keyDigest = await keyIn(request);
      await store.joinEdge({ tokenId, hash: hashOf(secret), edgeId, keyDigest });
      log.info({ edgeId, tokenId, keyDigest }, "a machine joined as an edge");
      return { certificate: await authority.sign(request, EDGE, now()) };
    },
  };
}

/** For an edge that has shown its certificate, whose digest is the caller's name here. */
export function createEdgeMemberHandlers({
  authority,
  now,
  log,
}: JoinDeps): Handlers<typeof edgeMemberApi, EdgeCaller> {
  return {
    async renewEdge({ body: { request } }, { caller: { edgeId, keyDigest } }) {
      if ((await keyIn(request)) !== keyDigest) {
        throw new AppError(
          "forbidden",
          `the request is for another key than edge '${edgeId}' has joined with: a new key joins with a new token`,
        );
      }
      log.info({ edgeId }, "renewed the certificate of an edge");
      return { certificate: await authority.sign(request, EDGE, now()) };
    },
  };
}

export interface EdgeCaller {
  readonly edgeId: string;
  readonly keyDigest: string;
}

export function createEdgeListHandlers(
  store: Pick<MachineStore, "listEdges" | "removeEdge">,
): Handlers<typeof edgesApi> {
  return {
    listEdges: async () => (await store.listEdges()).map(({ id, joinedAt }) => ({ id, joinedAt: iso(joinedAt) })),
    async removeEdge({ params: { edgeID } }) {
      if (!(await store.removeEdge(edgeID))) throw new AppError("not_found", `edge '${edgeID}' not found`);
    },
  };
}

/** The digest of the key that the request is for. @throws {AppError} bad_request */
function keyIn(request: string): Promise<string> {
  return digestOfRequest(request).catch((cause: unknown) => {
    const message = cause instanceof RangeError ? cause.message : "the request is unreadable";
    throw new AppError("bad_request", message, { cause });
  });
}

async function membershipOf(
  nodeId: string,
  request: string,
  { authority, nodeKey, now }: Pick<JoinDeps, "authority" | "nodeKey" | "now">,
) {
  return {
    certificate: await authority.sign(request, nodeName(nodeId), now()),
    nodeToken: nodeToken(nodeKey, nodeId, "from node"),
    orchestratorToken: nodeToken(nodeKey, nodeId, "to node"),
  };
}

/** @throws {AppError} failed_precondition */
function checkClock(theirs: number, ours: number): void {
  const skewMs = theirs - ours;
  if (Math.abs(skewMs) <= MOST_SKEW_MS) return;
  const off = `${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs < 0 ? "behind" : "ahead of"}`;
  throw new AppError(
    "failed_precondition",
    `the clock of this machine says ${iso(theirs)}, which is ${off} the orchestrator's: set it (timedatectl set-ntp true), then join with the same token`,
  );
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

function shown({ id, kind, createdAt, expiresAt, usedAt, nodeId, edgeId, revokedAt }: JoinTokenRecord) {
  return {
    id,
    kind: kind ?? "node",
    createdAt: iso(createdAt),
    expiresAt: iso(expiresAt),
    usedAt: usedAt === undefined ? null : iso(usedAt),
    nodeID: nodeId ?? null,
    edgeID: edgeId ?? null,
    revokedAt: revokedAt === undefined ? null : iso(revokedAt),
  };
}
