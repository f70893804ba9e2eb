/** Creates sandboxes: the list of the steps. A step that refuses leaves nothing behind, and `launch` cleans up after itself. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import type { Timing } from "../../../shared/program/tracing/timing.ts";
import type { Callers } from "../../access/wire.ts";
import type { Base } from "../../base/base.ts";
import type { StartOutcome } from "../../lifecycle/start/launch.ts";
import type { Lifecycle } from "../../lifecycle/wire.ts";
import { readAllowed } from "../../network-policy/proxy.ts";
import type { Pools } from "../../nodes/pools/pool-targets.ts";
import type { PlaceholderCheck } from "../../secrets/placeholder-check.ts";
import { runPart } from "../../store/audit/scope.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { TemplateNames } from "../../templates/names.ts";
import type { Spawns } from "../../templates/usage.ts";
import type { ResolveMounts } from "../../volumes/mounts.ts";
import { describeSandbox } from "./description.ts";
import { readRequest } from "./request.ts";
import { findSource, helpsPool } from "./source.ts";

export interface CreatingParts {
  readonly lifecycle: Lifecycle;
  readonly callers: Callers;
  readonly placeholders: PlaceholderCheck;
  readonly templates: TemplateNames;
  readonly pools: Pools;
  readonly spawns: Spawns;
  readonly resolveMounts: ResolveMounts;
}

interface CreateAsk {
  readonly defaultTimeoutSeconds: number;
  /** Aborted: the client has disconnected. */
  readonly signal: AbortSignal;
  readonly timing: Timing;
}

export interface Creating {
  one(project: Project, body: CreateBody, ask: CreateAsk): Promise<SandboxRecord>;
  /**
   * `count` sandboxes of one request, each as if it were asked for alone: in the order in which they were begun, a record or
   * the error that it would have got. Throws when none could be tried.
   */
  many(project: Project, body: CreateBody, ask: CreateAsk & { readonly count: number }): Promise<StartOutcome[]>;
}

/** Starts of one request that are under way at a time: a node starts a few at a time, and others want their turn too. */
const AT_ONCE = 16;

export function createCreating(base: Base, parts: CreatingParts): Creating {
  const { lifecycle, callers, placeholders, templates, pools, spawns, resolveMounts } = parts;
  const proxyRanges = readAllowed(base.config.egressProxyAllow);
  const { limits, refusals } = callers;

  async function read(project: Project, body: CreateBody, defaultTimeoutSeconds: number) {
    const options = await readRequest(project, body, defaultTimeoutSeconds, {
      limits,
      refusals,
      placeholders,
      proxyRanges,
    });
    const source = await findSource(project, body, { limits, refusals, resolveMounts, templates });
    return { project, options, source };
  }

  async function start(
    wanted: Awaited<ReturnType<typeof read>>,
    { since, signal, timing }: Pick<CreateAsk, "signal" | "timing"> & { readonly since: number },
  ): Promise<SandboxRecord> {
    const { project, source } = wanted;
    const { sandbox, start } = describeSandbox(newSandboxId(), wanted, base);
    const record = await lifecycle.launch({
      sandbox,
      start,
      limit: limits.starts(project),
      region: project.region,
      labels: project.nodeLabels,
      since,
      signal,
      timing,
      ...defined({ least: source.least, nodeId: source.nodeId, imageNodeId: source.build.nodeId }),
    });
    // By the time of the request: of a burst that waits for its turns, the starts are spread over the wait.
    if (helpsPool(source)) pools.used(source.build, since);
    spawns.count(source.template.id);
    return record;
  }

  /** The client has left, and cannot learn the sandbox's id. */
  function abandon({ id }: SandboxRecord): void {
    base.background.run("kill unwanted sandbox", () => lifecycle.ending.kill(id, "abandoned"));
  }

  return {
    async one(project, body, { defaultTimeoutSeconds, signal, timing }) {
      const wanted = await timing.measure("read", () => read(project, body, defaultTimeoutSeconds));
      const record = await start(wanted, { since: base.now(), signal, timing });
      if (signal.aborted) abandon(record);
      return record;
    },

    async many(project, body, { defaultTimeoutSeconds, signal, timing, count }) {
      const { sandboxes } = limits.starts(project);
      if (count > sandboxes) {
        throw new AppError(
          "bad_request",
          `body field 'count' must be at most the project's limit of ${sandboxes} concurrent sandboxes`,
        );
      }
      const wanted = await timing.measure("read", () => read(project, body, defaultTimeoutSeconds));
      const outcomes: StartOutcome[] = [];
      const since = base.now();
      const rest = Array.from({ length: count }, (_, index) => index).values();
      const worker = async () => {
        for (const index of rest) {
          outcomes[index] = await runPart(() => start(wanted, { since, signal, timing: timing.beside() })).then(
            (record) => ({ record }),
            (reason: unknown) => ({ error: AppError.from(reason) }),
          );
        }
      };
      await Promise.all(Array.from({ length: Math.min(count, AT_ONCE) }, worker));
      if (signal.aborted) for (const outcome of outcomes) if ("record" in outcome) abandon(outcome.record);
      return outcomes;
    },
  };
}
