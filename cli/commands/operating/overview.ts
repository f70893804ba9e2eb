/** The platform at a glance. */

import { within } from "../../../shared/program/deadline.ts";
import { type Api, bodyOf, type Item, type Reply, unreached } from "../../api/client.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { age, bytes } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";
import { nodeView } from "./nodes.ts";

interface Overview {
  readonly apiUrl: string;
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
  readonly version: string;
  readonly commit: string;
  readonly envdVersion: string;
  readonly running: number | null;
  readonly paused: number | null;
  readonly nodes: Reply<"GET /nodes"> | null;
}

const view: View<Overview> = {
  name: ({ apiUrl }) => apiUrl,
  columns: [
    { title: "API", of: ({ apiUrl }) => apiUrl },
    { title: "STATE", of: ({ ready }) => (ready ? "ready" : "failed"), state: true },
    {
      title: "CHECKS",
      of: ({ checks }) =>
        Object.entries(checks)
          .map(([name, text]) => `${name} ${text}`)
          .join(", "),
    },
    {
      title: "VERSION",
      of: ({ version, commit, envdVersion }) => `${version} (${commit.slice(0, 12)}), envd ${envdVersion}`,
    },
    {
      title: "SANDBOXES",
      of: ({ running, paused }) => (running === null ? "?" : `${running} running, ${paused ?? 0} paused`),
    },
  ],
};

export const status: Action = async (context, _args, options) => {
  const { apiUrl, adminToken } = await context.settings();
  // First: a platform whose database is away answers little else.
  const { ready, checks } = await readiness(apiUrl, context);
  const isOperator = adminToken !== undefined;
  const api = await (isOperator ? context.admin() : context.api());
  const versions = await api.call("GET /version", {});
  const counts = await (isOperator ? ofPlatform(api) : ofProject(api)).catch((error: unknown): Counts => {
    if (ready || !(error instanceof Failure)) throw error;
    context.out.note(`error: sandboxes and nodes cannot be read: ${error.message}`);
    return { running: null, paused: null, nodes: null };
  });
  const overview: Overview = { apiUrl, ready, checks, ...versions, ...counts };
  if (!(await context.out.structured(overview, options))) {
    await context.out.one(view, overview, options);
    if (overview.nodes !== null) {
      await context.out.line("");
      await context.out.list(nodeView, overview.nodes, options);
    } else if (!isOperator)
      context.out.note("without the operators' token: sandboxes are those of the project, and nodes are not shown");
  }
  return ready ? 0 : EXIT.failed;
};

type Counts = Pick<Overview, "running" | "paused" | "nodes">;

async function ofProject(api: Api): Promise<Counts> {
  const all = await api.all("GET /v2/sandboxes", { query: {} });
  return { running: all.filter(isRunning).length, paused: all.filter(isPaused).length, nodes: null };
}

async function ofPlatform(api: Api): Promise<Counts> {
  const all = await api.all("GET /admin/sandboxes", { query: {} });
  const nodes = await api.call("GET /nodes", { query: {} });
  return { running: all.filter(isRunning).length, paused: all.filter(isPaused).length, nodes };
}

const isRunning = ({ state }: { readonly state: string }) => state !== "paused";
const isPaused = ({ state }: { readonly state: string }) => state === "paused";

/** A platform that is not ready says so with a status that is a failure elsewhere. */
export async function readiness(
  apiUrl: string,
  { timeoutMs, signal }: Context,
): Promise<Pick<Overview, "ready" | "checks">> {
  return within(timeoutMs, async (limit) => {
    const response = await fetch(`${apiUrl}/readyz?verbose`, { signal: AbortSignal.any([limit, signal]) }).catch(
      (cause: unknown) => {
        throw unreached(apiUrl, cause, timeoutMs);
      },
    );
    const body = (await bodyOf(response, { url: apiUrl, timeoutMs, signal })) as
      | Partial<Reply<"GET /readyz">>
      | undefined;
    return { ready: response.ok && body?.ready === true, checks: body?.checks ?? {} };
  });
}

interface Use {
  readonly sandbox: Item<"GET /v2/sandboxes">;
  readonly metric: Reply<"GET /sandboxes/metrics">["sandboxes"][string] | undefined;
}

const topView: View<Use> = {
  name: ({ sandbox }) => `sandbox/${sandbox.sandboxID}`,
  columns: [
    { title: "ID", of: ({ sandbox }) => sandbox.sandboxID },
    { title: "TEMPLATE", of: ({ sandbox }) => sandbox.alias ?? sandbox.templateID },
    { title: "AGE", of: ({ sandbox }) => age(sandbox.startedAt), moving: true },
    { title: "CPU", of: ({ metric }) => (metric === undefined ? "" : `${metric.cpuUsedPct.toFixed(1)}%`) },
    {
      title: "MEMORY",
      of: ({ metric }) => (metric === undefined ? "" : `${bytes(metric.memUsed)} of ${bytes(metric.memTotal)}`),
    },
    { title: "DISK", of: ({ metric }) => (metric === undefined ? "" : bytes(metric.diskUsed)) },
  ],
};

/** As many ids as one call takes. */
const IDS_AT_ONCE = 100;

export const top: Action = async (context, _args, options) => {
  const api = await context.api();
  await showList(context, options, topView, async () => {
    const sandboxes = await api.all("GET /v2/sandboxes", { query: { state: "running" } });
    const metrics: Record<string, Use["metric"]> = {};
    for (let from = 0; from < sandboxes.length; from += IDS_AT_ONCE) {
      const ids = sandboxes.slice(from, from + IDS_AT_ONCE).map(({ sandboxID }) => sandboxID);
      const found = await api.call("GET /sandboxes/metrics", { query: { sandbox_ids: ids.join(",") } });
      Object.assign(metrics, found.sandboxes);
    }
    const used = ({ metric }: Use) => metric?.cpuUsedPct ?? -1;
    const all = sandboxes.map((sandbox): Use => ({ sandbox, metric: metrics[sandbox.sandboxID] }));
    return all.toSorted((a, b) => used(b) - used(a));
  });
};
