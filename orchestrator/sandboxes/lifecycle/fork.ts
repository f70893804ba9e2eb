/** Forks a running sandbox: N sandboxes start from one checkpoint. The answer has a sandbox or an error for each. */

import { AppError } from "../../../shared/http/errors.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import type { Seal } from "../../../shared/program/seal.ts";
import { openPassword, sealPassword } from "../../network/secret.ts";
import type { Project } from "../../store/projects.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Store } from "../../store/store.ts";
import type { Launch } from "../launch.ts";
import { startRequest } from "../start-request.ts";
import type { Checkpoint, Checkpointing } from "./checkpoint.ts";

type Fork = { readonly record: SandboxRecord } | { readonly error: AppError };

export interface Forking {
  /** In the order of the request; resolves when every new sandbox has started or failed. Throws when none could be tried. */
  fork(project: Project, id: string, ask: { readonly count: number; readonly seconds: number }): Promise<Fork[]>;
}

export interface ForkingDeps {
  readonly store: Store;
  readonly checkpointing: Checkpointing;
  readonly launch: Launch;
  readonly sealing: Seal;
  readonly seed: string;
  readonly now: () => number;
  readonly maxSandboxes: (project: Project) => number;
  readonly concurrency: number;
}

export function createForking(deps: ForkingDeps): Forking {
  const { store } = deps;

  async function one(project: Project, { source, build }: Checkpoint, seconds: number): Promise<Fork> {
    const id = newSandboxId();
    try {
      const sealed = await store.sandboxes.envs(source.id);
      const envs = sealed === undefined ? "{}" : deps.sealing.open(sealed, source.id);
      const proxyPassword = openPassword(deps.sealing, source.sealedProxyPassword, source.id);
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
        network: source.network,
        sealedProxyPassword: sealPassword(deps.sealing, proxyPassword, id),
        internet: source.internet,
        onTimeout: source.onTimeout,
        onTimeoutMemory: source.onTimeoutMemory,
        onResume: source.onResume,
        autoResume: source.autoResume,
        timeoutSeconds: seconds,
        createdAt: deps.now(),
        sealedEnvs: deps.sealing.close(envs, id),
      };
      const start = startRequest(sandbox, {
        seed: deps.seed,
        proxyPassword,
        envs: JSON.parse(envs) as Record<string, string>,
        build,
        origin: { is: "snapshot", snapshotId: build.id, memory: build.memory },
      });
      const record = await deps.launch({
        sandbox,
        start,
        limit: deps.maxSandboxes(project),
        nodeId: source.nodeId,
      });
      return { record };
    } catch (reason) {
      return { error: AppError.from(reason) };
    }
  }

  return {
    async fork(project, id, { count, seconds }) {
      const limit = deps.maxSandboxes(project);
      if (count >= limit) {
        const most = `the project's limit of ${limit} concurrent sandboxes`;
        throw new AppError("bad_request", `body field 'count' must be less than ${most}`);
      }
      const checkpoint = await deps.checkpointing.checkpoint(project, id, {
        kind: "fork",
        done: "forked",
        same: "wait",
      });
      try {
        const forks: Fork[] = [];
        const rest = Array.from({ length: count }, (_, index) => index).values();
        const worker = async () => {
          for (const index of rest) forks[index] = await one(project, checkpoint, seconds);
        };
        await Promise.all(Array.from({ length: Math.min(count, deps.concurrency) }, worker));
        return forks;
      } finally {
        // The node keeps the checkpoint for as long as a fork needs it.
        await deps.checkpointing.discard(checkpoint.build);
      }
    },
  };
}
