/** Handlers that start a build and report its progress. */

import type { BuildBody, BuildLogEntry, RegistryAccess } from "../../shared/agent-api/build-shapes.ts";
import type { buildApi } from "../../shared/api/builds.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Base } from "../base/base.ts";
import { iso } from "../forms/time.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import { ownBuild } from "../templates/ownership.ts";
import { readImage } from "./image-reference.ts";
import type { BuildQueue } from "./queue.ts";
import { settingsOf } from "./settings.ts";
import { filesOf, readSteps, type WireStep } from "./steps.ts";
import type { Archives } from "./uploads/archives.ts";

export interface BuildsDeps {
  readonly base: Base;
  readonly store: Store;
  readonly names: TemplateNames;
  readonly archives: Archives;
  readonly queue: BuildQueue;
  /** Whether another orchestrator serves the platform now. */
  readonly hasOthers: () => Promise<boolean>;
}

type BuildHandlers = Pick<Handlers<typeof buildApi, Project>, "startBuild" | "buildStatus" | "buildLogs">;

interface BuildDefinition {
  readonly fromImage?: string;
  readonly fromTemplate?: string;
  readonly fromImageRegistry?: RegistryAccess;
  readonly force?: boolean;
  readonly steps?: readonly WireStep[];
  readonly startCmd?: string;
  readonly readyCmd?: string;
}

/** Base of a build that names none; nodes have it without any registry. */
const DEFAULT_IMAGE = "e2bdev/base";
/** Most entries of one reply. */
const PAGE = 100;

export function createBuildHandlers(deps: BuildsDeps): BuildHandlers {
  const { store } = deps;
  const { config, sealing } = deps.base;
  const templates = { names: deps.names, templates: store.templates };

  /** The base of a build, without credentials: credentials never reach the database. */
  async function origin(
    caller: Project,
    ask: BuildDefinition,
  ): Promise<{ readonly from: BuildBody["from"]; readonly parent: Build | undefined }> {
    const { fromImage, fromTemplate } = ask;
    if (fromTemplate === undefined) {
      if (fromImage === undefined && ask.fromImageRegistry !== undefined) {
        throw new AppError("bad_request", "body field 'fromImageRegistry' requires 'fromImage'");
      }
      const from = readImage(fromImage ?? DEFAULT_IMAGE);
      if (from.is === "archive" && ask.fromImageRegistry !== undefined) {
        throw new AppError("bad_request", "body field 'fromImageRegistry' cannot be combined with an uploaded image");
      }
      return { from, parent: undefined };
    }
    if (fromImage !== undefined) {
      throw new AppError("bad_request", "body fields 'fromImage' and 'fromTemplate' exclude each other");
    }
    if (ask.fromImageRegistry !== undefined) {
      throw new AppError("bad_request", "body field 'fromImageRegistry' cannot be combined with 'fromTemplate'");
    }
    const { build: parent } = await deps.names.resolve(caller, fromTemplate);
    const build = { templateId: parent.templateId, buildId: parent.id, image: parent.image };
    return { from: { is: "build", build, settings: settingsOf(sealing, parent) }, parent };
  }

  /**
   * What another orchestrator got is on its disk, and nodes ask each of them: then the build fails when none has it.
   * @throws {AppError} bad_request
   */
  async function uploaded(templateId: string, from: BuildBody["from"], steps: BuildBody["steps"]): Promise<void> {
    const missing: string[] = [];
    if (from.is === "archive" && !(await deps.archives.touch(templateId, from.filesHash))) {
      missing.push(`body field 'fromImage': the image ${from.filesHash} has not been uploaded`);
    }
    for (const step of steps) {
      if (step.type !== "COPY" || (await deps.archives.touch(templateId, step.filesHash))) continue;
      missing.push(`step ${step.number} (COPY): its files (${step.filesHash}) have not been uploaded`);
    }
    const [first] = missing;
    if (first !== undefined && !(await deps.hasOthers())) throw new AppError("bad_request", first);
  }

  return {
    async startBuild({ params, body: given }, { caller }) {
      const ask: BuildDefinition = given;
      const { template, build } = await ownBuild(templates, caller, params);
      if (build.status !== "waiting") throw notWaiting();
      const { from, parent } = await origin(caller, ask);
      const steps = readSteps(ask.steps ?? []);
      await uploaded(template.id, from, steps);
      // A disk is never smaller than the disk of the build below it.
      const diskSizeMB = Math.max(build.diskSizeMB, parent?.diskSizeMB ?? 0);
      const body: BuildBody = {
        templateId: template.id,
        resources: { cpuCount: build.cpuCount, memoryMB: build.memoryMB, diskSizeMB },
        from,
        steps,
        force: ask.force ?? false,
        ...command("startCmd", ask.startCmd),
        ...command("readyCmd", ask.readyCmd),
        limitMs: config.buildLimitMs,
        projectId: caller.id,
      };
      const started = await deps.queue.start(
        {
          id: build.id,
          sealedBody: sealing.close(JSON.stringify(body), build.id),
          parentBuildId: parent?.id,
          diskSizeMB,
          files: filesOf(from, steps),
        },
        ask.fromImageRegistry,
      );
      if (!started) throw notWaiting();
    },

    async buildStatus({ params, query }, { caller }) {
      const { template, build } = await ownBuild(templates, caller, params);
      const { logsOffset = 0, limit = PAGE, level } = query;
      // The status is read first: when it says that the build ended, the database has the whole log.
      const entries = await store.buildLogs.from(build.id, logsOffset, limit, level);
      return {
        templateID: template.id,
        buildID: build.id,
        status: build.status,
        logs: [],
        logEntries: entries.map(toEntry),
        ...(build.reason === undefined ? {} : { reason: toReason(build.reason) }),
      };
    },

    async buildLogs({ params, query }, { caller }) {
      const { build } = await ownBuild(templates, caller, params);
      const { cursor, direction = "backward", limit = PAGE, level } = query;
      const entries = await store.buildLogs.around(build.id, {
        direction,
        limit,
        ...defined({ cursor, level }),
      });
      return { logs: entries.map(toEntry) };
    },
  };
}

/** An empty string means none. */
function command<K extends "startCmd" | "readyCmd">(name: K, text: string | undefined): { readonly [P in K]?: string } {
  return (text === undefined || text.trim() === "" ? {} : { [name]: text }) as { readonly [P in K]?: string };
}

function toEntry({ at, level, message, step }: BuildLogEntry) {
  return { timestamp: iso(at), level, message, ...defined({ step }) };
}

function toReason({ message, step }: { readonly message: string; readonly step?: string | undefined }) {
  return { message, ...defined({ step }) };
}

function notWaiting(): AppError {
  return new AppError("bad_request", "build is not in waiting state");
}
