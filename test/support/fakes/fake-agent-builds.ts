/** Builds of the fake agent: it builds nothing, but reports everything that a node reports of a build. */

import { randomUUID } from "node:crypto";
import type { BuildBody, BuildLogEntry, BuildSettings, BuildState } from "../../../shared/agent-api/build-shapes.ts";
import type { agentApi, StoredSnapshot } from "../../../shared/agent-api/routes.ts";
import type { Handlers } from "../../../shared/http/contract.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { ENVD_VERSION } from "../../../shared/version.ts";

export interface FakeBuild {
  readonly buildId: string;
  readonly body: BuildBody;
  readonly entries: BuildLogEntry[];
  /** The files that COPY steps fetched from the orchestrator, by hash. */
  readonly files: Map<string, Buffer>;
  log(message: string, more?: Partial<BuildLogEntry>): void;
  /** Reports the build as ready, with a checkpoint of the running start command when `memory` is given. */
  ready(options?: { readonly memory?: boolean }): void;
  fail(message: string, step?: string): void;
}

export interface FakeBuilds {
  /** The builds that this node knows, by build id. */
  readonly builds: Map<string, FakeBuild>;
  /** The body of every start request, in order. */
  readonly buildsAsked: BuildBody[];
  readonly buildsDeleted: string[];
  /** Replaces the work of a build; call `run` for the usual work: each step in the log, then ready. */
  onBuild: (build: FakeBuild, run: () => Promise<void>) => Promise<void> | void;
  /** Runs before the answer to `startBuild`, `buildState` or `deleteBuild`. */
  onBuildCall: (call: "start" | "state" | "delete", buildId: string) => Promise<void> | void;
}

export interface FakeBuildsDeps {
  readonly snapshots: Map<string, StoredSnapshot>;
  /** Fetches a file from the orchestrator as a node does. */
  files(templateId: string, hash: string): Promise<Buffer>;
}

export async function fetchFile(url: string, nodeToken: string): Promise<Buffer> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${nodeToken}` } });
  if (!response.ok) throw new Error(`files answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

type FakeBuildHandlers = Pick<Handlers<typeof agentApi, unknown>, "startBuild" | "buildState" | "deleteBuild">;

export function createFakeBuilds(deps: FakeBuildsDeps): {
  readonly state: FakeBuilds;
  readonly handlers: FakeBuildHandlers;
} {
  const states = new Map<string, Pick<BuildState, "status" | "reason" | "result">>();

  function made(buildId: string, body: BuildBody): FakeBuild {
    const entries: BuildLogEntry[] = [];
    return {
      buildId,
      body,
      entries,
      files: new Map(),
      log: (message, more = {}) => void entries.push({ at: Date.now(), level: "info", message, ...more }),
      ready({ memory } = {}) {
        const snapshotId = randomUUID();
        if (memory !== undefined) deps.snapshots.set(snapshotId, storedOf(buildId, snapshotId, memory));
        states.set(buildId, {
          status: "ready",
          result: {
            image: `built:${buildId}`,
            settings: settingsOf(body),
            diskBytes: 1,
            envdVersion: ENVD_VERSION,
            ...(memory === undefined ? {} : { snapshot: { snapshotId, memory, memoryBytes: 1 } }),
          },
        });
      },
      fail(message, step) {
        entries.push({ at: Date.now(), level: "error", message, ...(step === undefined ? {} : { step }) });
        states.set(buildId, { status: "error", reason: { message, ...(step === undefined ? {} : { step }) } });
      },
    };
  }

  async function run(build: FakeBuild): Promise<void> {
    build.log("pulling the image", { step: "base" });
    for (const step of build.body.steps) {
      build.log(`[builder ${step.number}/${build.body.steps.length}] ${step.type}`, { step: String(step.number) });
      if (step.type !== "COPY") continue;
      build.files.set(step.filesHash, await deps.files(build.body.templateId, step.filesHash));
    }
    build.ready(build.body.startCmd === undefined ? {} : { memory: true });
  }

  const state: FakeBuilds = {
    builds: new Map(),
    buildsAsked: [],
    buildsDeleted: [],
    onBuild: (_build, run) => run(),
    onBuildCall: () => undefined,
  };

  return {
    state,
    handlers: {
      async startBuild({ params: { buildId }, body }) {
        await state.onBuildCall("start", buildId);
        state.buildsAsked.push(body);
        if (state.builds.has(buildId)) return;
        const build = made(buildId, body);
        state.builds.set(buildId, build);
        states.set(buildId, { status: "building" });
        void (async () => {
          try {
            await state.onBuild(build, () => run(build));
          } catch (error) {
            build.fail(error instanceof Error ? error.message : String(error), "1");
          }
        })();
      },
      async buildState({ params: { buildId }, query }) {
        await state.onBuildCall("state", buildId);
        const build = state.builds.get(buildId);
        const now = states.get(buildId);
        if (build === undefined || now === undefined) throw new AppError("not_found", "no such build");
        return { buildId, ...now, entries: build.entries.slice(query.offset, query.offset + query.limit) };
      },
      async deleteBuild({ params: { buildId } }) {
        await state.onBuildCall("delete", buildId);
        state.buildsDeleted.push(buildId);
        const { snapshot } = states.get(buildId)?.result ?? {};
        if (snapshot !== undefined) deps.snapshots.delete(snapshot.snapshotId);
        state.builds.delete(buildId);
        states.delete(buildId);
      },
    },
  };
}

/** Adds up the settings of a build as a node does. */
function settingsOf({ from, steps, startCmd, readyCmd }: BuildBody): BuildSettings {
  let { envs, user, workdir } = from.is === "build" ? from.settings : { envs: {}, user: "user", workdir: "/home/user" };
  for (const step of steps) {
    if (step.type === "ENV") envs = { ...envs, ...Object.fromEntries(step.variables) };
    if (step.type === "USER") user = step.user;
    if (step.type === "WORKDIR") workdir = step.path;
  }
  return {
    envs,
    user,
    workdir,
    ...(startCmd === undefined ? {} : { startCmd }),
    ...(readyCmd === undefined ? {} : { readyCmd }),
  };
}

export function storedOf(buildId: string, snapshotId: string, memory: boolean): StoredSnapshot {
  return {
    snapshotId,
    kind: "checkpoint",
    sandboxId: "ibuilder",
    executionId: buildId,
    memory,
    memoryBytes: 1,
    diskBytes: 1,
    takenAt: Date.now(),
  };
}
