/** Handlers of the health routes: liveness, readiness, version. */

import type { healthApi } from "../../shared/api/health.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import type { Finding } from "../../shared/program/finding.ts";
import { stateOf } from "../../shared/tls/site/certificate.ts";
import { COMMIT, ENVD_VERSION, VERSION } from "../../shared/version.ts";
import { networkProblems } from "../nodes/entry.ts";
import type { Nodes } from "../nodes/nodes.ts";

export interface HealthDeps {
  readonly nodes: Nodes;
  readonly schema: string;
  ping(): Promise<void>;
  /** Why the database cannot be written. */
  databaseProblem(): string | undefined;
  /** Undefined: clients on other machines see no certificate of this program. */
  readonly certificateFindings?: () => readonly Finding[] | undefined;
  /** True while the program shuts down: it is no longer ready, so that load balancers choose another replica. */
  readonly stopping: () => boolean;
}

/** A node that does not serve this database: the text says why, and which commands adopt or discard. */
function stores(nodes: HealthDeps["nodes"]): Readonly<Record<string, string>> {
  const refusals = nodes.list().flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal]));
  return refusals.length === 0 ? {} : { "served database": `failed: ${refusals.join("; ")}` };
}

export function createHealthHandlers(deps: HealthDeps): Handlers<typeof healthApi> {
  async function database(): Promise<string> {
    try {
      await deps.ping();
      const problem = deps.databaseProblem();
      return problem === undefined ? "ok" : `failed: ${problem}`;
    } catch {
      return "failed: the database does not answer";
    }
  }

  /** Ready nodes whose host lets no packet of a sandbox out do not serve; as long as another one does, they are only named. */
  function network(): string {
    const ready = deps.nodes.list().filter((node) => node.status === "ready");
    const cut = ready.flatMap(({ id, load }) => {
      const problems = networkProblems(load);
      return problems === "" ? [] : [`node ${id}: ${problems}`];
    });
    if (cut.length === 0) return "ok";
    return `${cut.length < ready.length ? "ok, except for" : "failed:"} ${cut.join("; ")}`;
  }

  return {
    health: () => undefined,
    live: () => undefined,
    version: () => ({ version: VERSION, commit: COMMIT, envdVersion: ENVD_VERSION }),
    async ready({ query }, { status }) {
      const ready = deps.nodes.list().filter((node) => node.status === "ready").length;
      const certificate = deps.certificateFindings?.();
      const checks = {
        database: await database(),
        migrations: `ok (${deps.schema})`,
        ...stores(deps.nodes),
        nodes: ready > 0 ? `ok (${ready} ready)` : "failed: no node is ready",
        network: network(),
        ...(certificate === undefined ? {} : { certificate: stateOf(certificate) }),
        stopping: deps.stopping() ? "failed: asked to stop" : "ok",
      };
      const passed = Object.values(checks).every((check) => check.startsWith("ok"));
      if (!passed) status(503);
      return { ready: passed, ...(query.verbose === undefined && passed ? {} : { checks }) };
    },
  };
}
