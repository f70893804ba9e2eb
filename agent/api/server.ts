/** The agent's API: handlers that only call other parts, and the pages for operators. */

import type { TLSSocket } from "node:tls";
import type { FastifyInstance, FastifyRequest } from "fastify";
import {
  type agentApi,
  type Garbage,
  type Holdings,
  type NetworkCheck,
  STORE_HEADER,
} from "../../shared/agent-api/routes.ts";
import type { Access, Handlers, Route } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { isUuid, sameSecret } from "../../shared/ids.ts";
import { hostName } from "../../shared/policy/names.ts";
import { addressNumber } from "../../shared/policy/ranges.ts";
import { type Finding, findingText } from "../../shared/program/finding.ts";
import { ORCHESTRATOR } from "../../shared/tls/names.ts";
import { nameOf } from "../../shared/tls/peers.ts";
import type { Collecting } from "../blobs/collecting.ts";
import type { Builds } from "../builds/builds.ts";
import type { EgressProcess } from "../egress-supervisor/process.ts";
import type { Peering } from "../joining/peering.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { SandboxLogs } from "../sandboxes/logs.ts";
import type { ReplaceEgress } from "../sandboxes/replace-egress.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import type { Serving } from "../serving/serving.ts";
import type { Arrivals } from "../snapshots/beyond/arrivals.ts";
import type { ImageArrivals } from "../snapshots/beyond/image-arrivals.ts";
import type { Offers } from "../snapshots/beyond/offers.ts";
import type { SnapshotChecks } from "../snapshots/check/checks.ts";
import type { Holding } from "../snapshots/store/holding.ts";
import type { Snapshots } from "../snapshots/store/snapshots.ts";
import type { SnapshotTaker } from "../snapshots/take/snapshot-taker.ts";
import type { NetworkLogStore } from "../store/network-log.ts";
import type { SampleStore } from "../store/samples.ts";
import type { Volumes } from "../volumes/volumes.ts";
import type { Doctor } from "./doctor.ts";
import type { Instruments } from "./prometheus.ts";

export interface ApiDeps {
  readonly sandboxes: Sandboxes;
  readonly taker: Pick<SnapshotTaker, "pause" | "checkpoint">;
  readonly snapshots: Pick<Snapshots, "delete">;
  readonly arrivals: Pick<Arrivals, "fetch" | "cancel">;
  readonly imageArrivals: Pick<ImageArrivals, "fetch">;
  readonly offers: Offers;
  readonly snapshotChecks: Pick<SnapshotChecks, "ask" | "cancel">;
  readonly collecting: Pick<Collecting, "begin">;
  readonly builds: Pick<Builds, "start" | "state" | "delete">;
  readonly volumes: Pick<Volumes, "make" | "remove" | "list" | "capacityMb">;
  /** Why nothing new can begin on the node's disk; undefined while there is room. */
  readonly refusal: () => AppError | undefined;
  readonly listGarbage: () => Promise<Garbage>;
  readonly doctor: Doctor;
  readonly holdings: () => Holdings;
  readonly holding: Pick<Holding, "takeBack">;
  readonly serving: Pick<Serving, "admit" | "adopt">;
  readonly usage: Pick<UsageSampling, "latest">;
  readonly samples: Pick<SampleStore, "between">;
  readonly logs: Pick<SandboxLogs, "read">;
  readonly networkLog: Pick<NetworkLogStore, "read">;
  readonly replaceEgress: ReplaceEgress;
  readonly egress: Pick<EgressProcess, "check">;
  readonly reach: Pick<Reach, "problemOf">;
  readonly instruments: Pick<Instruments, "started" | "startFailed" | "stopped">;
}

export function handlers(deps: ApiDeps): Handlers<typeof agentApi> {
  const { sandboxes, taker, snapshots, builds, usage, samples, logs, instruments, egress, networkLog, replaceEgress } =
    deps;
  return {
    async startExecution({ params, body }) {
      const begun = performance.now();
      try {
        const started = await sandboxes.start(params.executionId, body);
        instruments.started(started.warm ? "warm" : "cold", seconds(begun));
        return started;
      } catch (error) {
        instruments.startFailed();
        throw error;
      }
    },
    async stopExecution({ params }) {
      const begun = performance.now();
      await sandboxes.stop(params.executionId);
      instruments.stopped(seconds(begun));
    },
    pauseExecution: ({ params, body }) => taker.pause(params.executionId, body),
    checkpointExecution: ({ params, body }) => taker.checkpoint(params.executionId, body),
    fetchSnapshot: ({ params, body }) => deps.arrivals.fetch({ ...params, ...body }),
    offerSnapshot: ({ params }) => deps.offers.snapshot(params.snapshotId),
    offerImage: ({ body }) => deps.offers.image(body.image, body.projectId),
    fetchImage: ({ body }) => deps.imageArrivals.fetch(body),
    collectBlobs: ({ body }) => deps.collecting.begin(body),
    checkSnapshot: ({ params, body }) => deps.snapshotChecks.ask({ ...params, ...body }),
    cancelSnapshotCheck: ({ params }) => deps.snapshotChecks.cancel(params.snapshotId, params.checkId),
    async deleteSnapshot({ params }) {
      deps.arrivals.cancel(params.snapshotId);
      await deps.offers.forget(params.snapshotId);
      await snapshots.delete(params.snapshotId);
    },
    listGarbage: () => deps.listGarbage(),
    examine: () => deps.doctor.examine(),
    holdings: () => deps.holdings(),
    serveStore: ({ body }) => deps.serving.adopt(body),
    takeBackSnapshot: ({ params }) => deps.holding.takeBack(params.snapshotId),
    updateExecution: ({ params, body }) => sandboxes.setEndAt(params.executionId, body.endAt),
    replaceEgress: ({ params, body }) =>
      sandboxes.changeEgress(params.executionId, body, {
        enforce: (sandbox) => replaceEgress.enforce(sandbox, body),
        after: (sandbox) => replaceEgress.trust(sandbox, body),
      }),
    checkNetwork({ params, query }) {
      const sandbox = sandboxes.get(params.executionId);
      if (sandbox === undefined)
        throw new AppError("sandbox_not_found", `execution ${params.executionId} does not run on this node`);
      const asked = destination(query.host);
      const problem = deps.reach.problemOf(sandbox.egress, { protocol: query.protocol, named: "hostname" in asked });
      const flow = { ...asked, port: query.port, protocol: query.protocol };
      return egress.check(sandbox.container.slot.address, flow).then((checked) => stopped(checked, problem));
    },
    networkLog: ({ params, query }) => networkLog.read(params.sandboxId, query),
    startBuild: ({ params, body }) => builds.start(params.buildId, body),
    buildState: ({ params, query }) => builds.state(params.buildId, query.offset, query.limit),
    deleteBuild: ({ params }) => builds.delete(params.buildId),
    async makeVolume({ params, body }) {
      const refused = deps.refusal();
      if (refused !== undefined) throw refused;
      await deps.volumes.make(params.volumeId, body.sizeMb);
    },
    deleteVolume: ({ params }) => deps.volumes.remove(params.volumeId),
    async listVolumes() {
      const kept = deps.volumes.list().filter(({ id }) => isUuid(id));
      const sizes = await Promise.all(kept.map(({ id }) => deps.volumes.capacityMb(id)));
      return kept.flatMap(({ id, usedBytes }, index) => {
        const sizeMb = sizes[index];
        return sizeMb === undefined ? [] : [{ volumeId: id, sizeMb, usedBytes }];
      });
    },
    executionMetrics: ({ params, query }) =>
      samples.between(params.executionId, query.start ?? 0, query.end ?? Number.MAX_SAFE_INTEGER),
    latestMetrics: ({ body }) =>
      Object.fromEntries(
        body.executionIds.flatMap((id) => {
          const sample = usage.latest(id);
          return sample === undefined ? [] : [[id, sample] as const];
        }),
      ),
    executionLogs: ({ params, query }) => logs.read(params.executionId, sandboxes.get(params.executionId), query),
  };
}

/** What the policy allows does not come through where the host stops it. */
function stopped(checked: NetworkCheck, finding: Finding | undefined): NetworkCheck {
  if (finding === undefined || checked.verdict === "deny") return checked;
  const reason = `the policy allows it (${checked.rule}), and the node's host stops it: ${findingText(finding)}`;
  return { ...checked, verdict: "deny", rule: `host ${finding.evidence}`, reason };
}

function destination(host: string): { address: string } | { hostname: string } {
  if (addressNumber(host) !== undefined) return { address: host };
  const hostname = hostName(host);
  if (hostname === undefined) throw new AppError("bad_request", "host is neither a host name nor an IPv4 address");
  return { hostname };
}

/** The whole API is for the orchestrator only: its token, and on a node that has joined its certificate. */
export function orchestratorOnly(peering: Pick<Peering, "orchestratorTokens" | "apiDoor">) {
  return (request: FastifyRequest): undefined => {
    if (peering.apiDoor !== undefined && nameOf(request.raw.socket as TLSSocket) !== ORCHESTRATOR) {
      throw new AppError("forbidden", "the connection has no certificate of this platform's orchestrator");
    }
    const given = bearer(request);
    if (!peering.orchestratorTokens.some((token) => sameSecret(given, token))) {
      throw new AppError("unauthorized", "the orchestrator's token is missing or wrong");
    }
    return undefined;
  };
}

/** Routes that change nothing here, and those of operators. */
const OF_ANY_STORE = new Set(["/v1/metrics", "/v1/store"]);

/** Only the orchestrator whose store the node serves may change anything. */
export function servedOnly(authenticate: (request: FastifyRequest) => undefined, serving: Pick<Serving, "admit">) {
  return async (_access: Access, request: FastifyRequest, route: Route): Promise<undefined> => {
    authenticate(request);
    if (route.method === "GET" || OF_ANY_STORE.has(route.path)) return undefined;
    const name = request.headers[STORE_HEADER];
    await serving.admit(typeof name === "string" ? name : undefined);
    return undefined;
  };
}

export function bearer({ headers }: FastifyRequest): string {
  return /^Bearer (.+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
}

/** Name of a check, and a function that returns undefined when it passes, else the problem. */
type Checks = () => Readonly<Record<string, string | undefined>>;

export interface OperatorDeps {
  readonly instruments: Pick<Instruments, "contentType" | "text">;
  readonly checks: Checks;
  readonly metricsTokens: () => readonly string[];
  /** Unix milliseconds of the last report that the orchestrator has answered: readiness knows nothing that is newer. */
  readonly lastReport: () => number;
}

/** Liveness and readiness, without a token: they reveal nothing of sandboxes. Metrics, with one of `metricsTokens`. */
export function addOperatorRoutes(
  server: FastifyInstance,
  { instruments, checks, metricsTokens, lastReport }: OperatorDeps,
): void {
  server.get("/livez", (_request, reply) => reply.type("text/plain").send("ok\n"));
  server.get("/readyz", (request, reply) => {
    const found = Object.entries(checks());
    const well = found.every(([, problem]) => problem === undefined);
    const lines = found.map(
      ([name, problem]) =>
        `${problem === undefined ? "ok  " : "fail"} ${name}${problem === undefined ? "" : `: ${problem}`}`,
    );
    const verbose = Object.hasOwn(request.query as object, "verbose");
    const text = verbose || !well ? lines.join("\n") : "ok";
    return reply
      .status(well ? 200 : 503)
      .header("x-last-report", String(lastReport()))
      .type("text/plain")
      .send(`${text}\n`);
  });
  server.get("/metrics", async (request, reply) => {
    const given = bearer(request);
    if (!metricsTokens().some((token) => sameSecret(given, token))) {
      throw new AppError("unauthorized", "send the metrics token: Authorization: Bearer <token>");
    }
    return reply.type(instruments.contentType).send(await instruments.text());
  });
}

function seconds(begun: number): number {
  return (performance.now() - begun) / 1_000;
}
