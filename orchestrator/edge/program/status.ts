/** The edge program's port for operators' tools. It is apart from the sandboxes' port, where every path belongs to sandboxes. */

import type { AddressInfo } from "node:net";
import { Gauge, Registry } from "prom-client";
import { healthApi } from "../../../shared/api/health.ts";
import type { Handlers } from "../../../shared/http/contract.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import { factsOf } from "../../../shared/tls/credentials.ts";
import type { LiveCredentials } from "../../../shared/tls/live.ts";
import { stateOf } from "../../../shared/tls/site/certificate.ts";
import type { Site } from "../../../shared/tls/site/files.ts";
import { COMMIT, ENVD_VERSION, VERSION } from "../../../shared/version.ts";
import type { Edge } from "../edge.ts";
import type { Follower } from "../following/follower.ts";
import type { EdgeConfig } from "./config.ts";

export interface StatusDeps {
  readonly log: Log;
  readonly follower: Pick<Follower, "followed" | "size" | "isCurrent">;
  /** Undefined: it does not listen yet. */
  readonly edge: () => Edge | undefined;
  /** The certificate that clients see; undefined: a proxy in front has it. */
  readonly site?: Pick<Site, "until" | "findings"> | undefined;
  /** What it shows to orchestrators and nodes; undefined: it has not joined. */
  readonly credentials?: LiveCredentials | undefined;
  readonly teardown: Teardown;
}

/** Resolves with its URL when it listens. */
export async function startStatus(
  config: Pick<EdgeConfig, "edgeStatusHost" | "edgeStatusPort">,
  deps: StatusDeps,
): Promise<string> {
  const { log, teardown } = deps;
  const { edgeStatusHost: host } = config;
  const server = createServer(log);
  const stopping = { asked: false };
  serve(server, healthApi, handlersOf(deps, stopping), () => undefined);
  const registry = gauges(deps);
  server.get("/metrics", async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()));
  await server.listen({ host, port: config.edgeStatusPort });
  teardown.add("status", () => server.close());
  teardown.add("readiness", () => {
    stopping.asked = true;
  });
  const { port } = server.server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function handlersOf({ follower, edge, site }: StatusDeps, stopping: { asked: boolean }): Handlers<typeof healthApi> {
  return {
    health: () => undefined,
    live: () => undefined,
    version: () => ({ version: VERSION, commit: COMMIT, envdVersion: ENVD_VERSION }),
    ready({ query }, { status }) {
      const checks = {
        // Without an orchestrator it goes on with the sandboxes that it knows, so it stays ready.
        orchestrator:
          follower.followed === undefined
            ? "ok, except that none answers: sandboxes are reached as far as their nodes confirm them, and none is resumed"
            : `ok (${follower.size} routes of ${follower.followed})`,
        edge: edge() === undefined ? "failed: no orchestrator has answered yet" : "ok",
        ...(site === undefined ? {} : { certificate: stateOf(site.findings()) }),
        stopping: stopping.asked ? "failed: asked to stop" : "ok",
      };
      const ready = Object.values(checks).every((check) => check.startsWith("ok"));
      if (!ready) status(503);
      return query.verbose === undefined ? { ready } : { ready, checks };
    },
  };
}

function gauges({ follower, edge, site, credentials }: StatusDeps): Registry {
  const registry = new Registry();
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  gauge("svc_edge_routes", "Routes to running sandboxes", () => follower.size);
  gauge("svc_edge_current", "1 while every removal of a route is known", () => Number(follower.isCurrent()));
  gauge("svc_edge_clients", "Open client connections", () => edge()?.stats().clients ?? 0);
  gauge("svc_edge_active", "Requests and upgraded connections under way", () => edge()?.stats().active ?? 0);
  gauge("svc_edge_upstream", "Open connections to sandboxes and nodes", () => edge()?.stats().upstream ?? 0);
  if (site !== undefined) {
    gauge(
      "svc_certificate_expiry_timestamp_seconds",
      "When the certificate that clients see expires, Unix time",
      () => site.until / 1000,
    );
  }
  if (credentials !== undefined) {
    gauge(
      "svc_machine_certificate_expiry_timestamp_seconds",
      "When the certificate that this edge shows to the platform's other machines expires, Unix time",
      () => factsOf(credentials.current.certificate).until / 1000,
    );
  }
  return registry;
}
