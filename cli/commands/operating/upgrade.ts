/** `svc upgrade --check`: what runs, compared with the version of this command. It changes nothing. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { COMMIT, ENVD_VERSION, SCHEMA, VERSION } from "../../../shared/version.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, usage } from "../../failure.ts";
import { wordsOf } from "../../installed.ts";
import { readiness } from "./overview.ts";
import { type Here, type Running, upgradePlan } from "./upgrade-plan.ts";

export const upgrade: Action = async (context, _args, options) => {
  if (options.check !== true) {
    throw usage(
      "an upgrade is `git pull && ./scripts/up` on each machine",
      "svc upgrade --check says what it would do",
    );
  }
  const here = await thisVersion(context);
  const running = await whatRuns(context);
  const plan = upgradePlan(here, running);
  const code = plan.refused.length === 0 ? 0 : EXIT.failed;
  if (await context.out.structured({ here, running, ...plan }, options)) return code;
  for (const text of plan.refused) await context.out.line(`REFUSED  ${text}`);
  for (const text of plan.notes) await context.out.line(`NOTE     ${text}`);
  for (const [index, text] of plan.steps.entries()) await context.out.line(`${`${index + 1}.`.padEnd(8)} ${text}`);
  if (plan.steps.length === 0)
    context.out.note(`Everything runs ${here.version} (${here.commit.slice(0, 12)}) already.`);
  else if (code === 0)
    context.out.note(
      wordsOf(context.env)(
        "One after the other: git pull && ./scripts/up on each machine, after `svc backup` and `svc doctor`.",
      ),
    );
  return code;
};

/** Programs that were built of a checkout have its commit; the command may run from the sources. */
async function thisVersion({ env }: Context): Promise<Here> {
  const here = { version: VERSION, commit: COMMIT, envdVersion: ENVD_VERSION, schema: SCHEMA };
  const checkout = env["SVC_CHECKOUT"] ?? "";
  if (COMMIT !== "source" || checkout === "") return here;
  try {
    const { stdout } = await promisify(execFile)("git", ["-C", checkout, "rev-parse", "HEAD"]);
    return { ...here, commit: stdout.trim() };
  } catch {
    return here;
  }
}

async function whatRuns(context: Context): Promise<Running> {
  const api = await context.admin();
  const { apiUrl, apiKey } = await context.settings();
  const [versions, { checks }, nodes, edges, sandboxes] = await Promise.all([
    api.call("GET /version", {}),
    readiness(apiUrl, context),
    api.call("GET /nodes", { query: {} }),
    api.call("GET /admin/edges", {}),
    apiKey === undefined ? [] : (await context.api()).all("GET /v2/sandboxes", { query: {} }),
  ]);
  const envds: Record<string, number> = {};
  for (const { envdVersion } of sandboxes) envds[envdVersion] = (envds[envdVersion] ?? 0) + 1;
  return {
    orchestrator: { ...versions, schema: /^ok \((.*)\)$/.exec(checks["migrations"] ?? "")?.[1] },
    nodes: nodes.map(({ id, version, commit, status, sandboxCount }) => ({
      id,
      version,
      commit,
      status,
      sandboxCount,
    })),
    edges: edges.map(({ id }) => id),
    envds,
  };
}
