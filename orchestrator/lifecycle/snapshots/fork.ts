/** Forks a running sandbox: N sandboxes start from one checkpoint. The answer has a sandbox or an error for each. */

import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import { noTiming, type Timing } from "../../../shared/program/tracing/timing.ts";
import { openPassword, sealPassword } from "../../network-policy/secret.ts";
import type { PlaceholderCheck } from "../../secrets/placeholder-check.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import type { ChangeOutcome } from "../observed.ts";
import type { Launch, StartOutcome } from "../start/launch.ts";
import { startRequest } from "../start/start-request.ts";
import type { Checkpoint, Checkpointing } from "./checkpoint.ts";

export interface Forking {
  /** In the order of the request; resolves when every new sandbox has started or failed. Throws when none could be tried. */
  fork(project: Project, id: string, ask: ForkAsk): Promise<StartOutcome[]>;
}

interface ForkAsk {
  readonly count: number;
  readonly seconds: number;
  /** false: the copies boot from the disk. */
  readonly memory: boolean;
  /** Aborted: the client has disconnected. */
  readonly signal?: AbortSignal;
  readonly timing?: Timing;
}

export interface ForkingDeps {
  readonly core: Core;
  readonly checkpointing: Checkpointing;
  readonly launch: Launch;
  readonly concurrency: number;
  readonly placeholders: PlaceholderCheck;
  /** Names of the identity tokens that the rules of a sandbox may ask for. */
  readonly tokenNames: (record: SandboxRecord) => ReadonlySet<string>;
  /** Of the whole fork; with the error code of a copy that did not start, where one did not. */
  observe(outcome: ChangeOutcome): void;
}

export function createForking(deps: ForkingDeps): Forking {
  const { store, now } = deps.core;

  async function one(
    project: Project,
    { source, build }: Checkpoint,
    { seconds, since, signal, timing }: Pick<ForkAsk, "seconds" | "signal" | "timing"> & { readonly since: number },
  ): Promise<StartOutcome> {
    const id = newSandboxId();
    try {
      const sealed = await store.sandboxes.envs(source.id);
      const envs = sealed === undefined ? "{}" : deps.core.sealing.open(sealed, source.id);
      const proxyPassword = openPassword(deps.core.sealing, source.sealedProxyPassword, source.id);
      const sandbox = {
        id,
        projectId: project.id,
        templateId: source.templateId,
        buildId: source.buildId,
        alias: source.alias,
        cpuCount: source.cpuCount,
        memoryMB: source.memoryMB,
        diskSizeMB: source.diskSizeMB,
        envdVersion: source.envdVersion,
        metadata: source.metadata,
        volumeMounts: source.volumeMounts,
        network: source.network,
        sealedProxyPassword: sealPassword(deps.core.sealing, proxyPassword, id),
        internet: source.internet,
        iam: source.iam,
        onTimeout: source.onTimeout,
        onTimeoutMemory: source.onTimeoutMemory,
        onResume: source.onResume,
        autoResume: source.autoResume,
        timeoutSeconds: seconds,
        createdAt: now(),
        sealedEnvs: deps.core.sealing.close(envs, id),
        seedId: deps.core.seeds.currentId,
        forkedFrom: { id: source.id, at: build.createdAt },
      };
      const start = startRequest(sandbox, {
        seeds: deps.core.seeds,
        proxyPassword,
        envs: JSON.parse(envs) as Record<string, string>,
        build,
        origin: { is: "snapshot", snapshotId: build.id, memory: build.memory },
      });
      const record = await deps.launch({
        sandbox,
        start,
        limit: deps.core.limits.starts(project),
        region: project.region,
        labels: project.nodeLabels,
        nodeId: source.nodeId,
        since,
        ...defined({ signal, timing }),
      });
      return { record };
    } catch (reason) {
      return { error: AppError.from(reason) };
    }
  }

  /** A fork is a new sandbox: a secret that its rules name must exist. The checkpoint refuses a sandbox that cannot be forked. */
  async function checkPlaceholders(project: Project, id: string): Promise<void> {
    const record = await store.sandboxes.get(id);
    if (record?.projectId !== project.id) return;
    await deps.placeholders.check(project.id, record.network?.rules, deps.tokenNames(record));
  }

  async function forkNow(
    project: Project,
    id: string,
    ask: ForkAsk & { readonly timing: Timing },
  ): Promise<StartOutcome[]> {
    const { count, seconds, memory, signal, timing } = ask;
    const request = { kind: "fork", memory, done: "forked", same: "wait", copies: count, timing } as const;
    const taking = () => deps.checkpointing.checkpoint(project, id, request);
    const checkpoint = await timing.measure("checkpoint", taking);
    try {
      const forks: StartOutcome[] = [];
      const rest = Array.from({ length: count }, (_, index) => index).values();
      const since = now();
      const worker = async () => {
        for (const index of rest)
          forks[index] = await one(project, checkpoint, {
            seconds,
            since,
            timing: timing.beside(),
            ...defined({ signal }),
          });
      };
      await Promise.all(Array.from({ length: Math.min(count, deps.concurrency) }, worker));
      return forks;
    } finally {
      // The node keeps the checkpoint for as long as a fork needs it.
      await deps.checkpointing.discard(checkpoint.build);
    }
  }

  return {
    async fork(project, id, ask) {
      const { sandboxes } = deps.core.limits.starts(project);
      if (ask.count >= sandboxes) {
        const most = `the project's limit of ${sandboxes} concurrent sandboxes`;
        throw new AppError("bad_request", `body field 'count' must be less than ${most}`);
      }
      await checkPlaceholders(project, id);
      const begun = now();
      const report = (result: ChangeOutcome["result"]) => deps.observe({ result, seconds: (now() - begun) / 1000 });
      try {
        const forks = await forkNow(project, id, { ...ask, timing: ask.timing ?? noTiming });
        report(forks.find((fork) => "error" in fork)?.error.code ?? "ok");
        return forks;
      } catch (reason) {
        report(AppError.from(reason).code);
        throw reason;
      }
    },
  };
}
