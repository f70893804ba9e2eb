/** The container of a build: started like a sandbox, with the same limits, filter and network, but without an owner. */

import { randomBytes, randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { Resources } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { OPEN } from "../../../shared/policy/egress-policy.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import { RUNTIME_MOUNT } from "../../containers/options.ts";
import type { Egress } from "../../egress-supervisor/host-egress.ts";
import type { Gate } from "../../network/gate.ts";
import { refuseHoles } from "../../node-disk/holes.ts";
import type { NodeDisks } from "../../node-disk/host-disks.ts";
import { networkInit } from "../../sandboxes/become-sandbox.ts";
import type { BootSpec } from "../../sandboxes/boot.ts";
import type { Disposal } from "../../sandboxes/disposal.ts";
import type { StepContext } from "./context.ts";
import { watchLeftovers } from "./leftovers.ts";
import {
  type EnvdUser,
  type ExitStatus,
  type Output,
  type Processes,
  RpcError,
  type RunningProgram,
} from "./processes.ts";

/** A program may stop some blocks before the end of a disk. */
const FULL_BYTES = 1024 * 1024;

export interface BuildContainerDeps {
  readonly docker: Docker;
  readonly egress: Egress;
  readonly disks: NodeDisks;
  readonly processes: Processes;
  readonly boot: (spec: BootSpec, signal: AbortSignal) => Promise<LiveContainer>;
  readonly disposal: Disposal;
  readonly gate: Gate;
  readonly now: () => number;
}

export interface BuildContainerSpec {
  readonly buildId: string;
  readonly templateId: string;
  readonly image: string;
  readonly resources: Resources;
}

export interface BuildContainer {
  readonly container: LiveContainer;
  readonly at: EnvdUser;
  /** Runs a program to its end. @throws {RpcError} when it does not start */
  run(script: Script, onOutput: Output, signal: AbortSignal): Promise<ExitStatus>;
  start(script: Script, onOutput: Output, signal: AbortSignal): Promise<RunningProgram>;
  /**
   * Runs a program to its end, and kills what it left running: a step is over when its command is, also while another
   * process holds its output. @throws {RpcError} when it does not start
   */
  runAlone(script: Script, onOutput: Output, signal: AbortSignal): Promise<ExitStatus>;
  /** Writes a file as root. */
  upload(path: string, content: Readable, signal: AbortSignal): Promise<void>;
  /** Whether its disk has no room left, for bytes or for files. */
  isFull(): Promise<boolean>;
  /** Commits the disk as an image of this name. All processes are frozen meanwhile. */
  commit(image: string): Promise<void>;
  /** Resolves when the container is dead; its removal continues in the background. May be repeated. */
  close(): Promise<void>;
}

export interface Script {
  readonly cmd?: string;
  readonly args: readonly string[];
  readonly context: StepContext;
  readonly tag?: string;
}

/** Runs a command in a login shell, as comparable builders do. */
export function loginShell(command: string, context: StepContext): Script {
  return { args: ["-l", "-c", command], context };
}

/** Runs one of the platform's own scripts as root, before bash is installed. */
export function rootScript(script: string, ...args: string[]): Script {
  const envs = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
  return {
    cmd: "/bin/sh",
    args: ["-c", script, "svc", ...args],
    context: { user: "root", workdir: "/", envs },
  };
}

/** Runs an act of `envd/steps/` as root, with the Node of the runtime: it needs no program of the image. */
export function stepAct(
  verb: "unpack" | "copy" | "directory" | "home",
  order: Readonly<Record<string, unknown>>,
): Script {
  const library = `${RUNTIME_MOUNT}/lib`;
  const node = ["--library-path", library, `${RUNTIME_MOUNT}/node`, `${RUNTIME_MOUNT}/envd/steps.js`];
  return {
    cmd: `${library}/loader`,
    args: [...node, verb, JSON.stringify(order)],
    context: { user: "root", workdir: "/", envs: {} },
  };
}

/** When this rejects, no container is left behind. */
export async function openBuildContainer(
  spec: BuildContainerSpec,
  deps: BuildContainerDeps,
  signal: AbortSignal,
): Promise<BuildContainer> {
  const { buildId, templateId, image, resources } = spec;
  const { egress, disks, disposal, gate, processes, now } = deps;
  const { containers, envd } = deps.docker;
  // The container's row names the build, so that recovery after a crash knows what the container is.
  const build = { templateId, buildId, image };
  const name = `svc-build-${randomUUID().slice(0, 8)}`;
  const container = await deps.boot({ name, build, resources, committed: true }, signal);
  let closing: Promise<void> | undefined;
  const close = () =>
    (closing ??= (async () => {
      await disposal.kill(container);
      disposal.remove(container);
    })());
  try {
    const at = { address: container.slot.address, accessToken: randomBytes(24).toString("hex") };
    await envd.init(
      { address: at.address, controlToken: container.controlToken },
      {
        accessToken: at.accessToken,
        // Each program gets its variables explicitly; those of a template below do not reach a start command.
        envVars: {},
        timestamp: new Date(now()).toISOString(),
        sandboxId: buildContainerId(buildId),
        templateId,
        executionId: buildId,
        ...(await networkInit(OPEN, egress)),
      },
      signal,
    );
    await gate.open(container.slot, { executionId: buildId, sandboxId: buildContainerId(buildId) }, OPEN);
    signal.throwIfAborted();

    const start = (script: Script, onOutput: Output, until: AbortSignal) => {
      const { cmd = "/bin/bash", args, context: where, tag } = script;
      const program = { cmd, args, user: where.user, cwd: where.workdir, envs: where.envs };
      return processes.start(at, tag === undefined ? program : { ...program, tag }, { onOutput, signal: until });
    };
    return {
      container,
      at,
      start,
      async run(script, onOutput, until) {
        try {
          const { ended } = await start(script, onOutput, until);
          return await ended;
        } catch (error) {
          throw isLost(error) ? await explained(container.id, deps, error) : error;
        }
      },
      async runAlone(script, onOutput, until) {
        const leftovers = watchLeftovers(container.cgroup);
        try {
          const { pid, ended } = await start(script, onOutput, until);
          return await leftovers.endWith(pid, ended, until);
        } catch (error) {
          throw isLost(error) ? await explained(container.id, deps, error) : error;
        }
      },
      upload: (path, content, until) => processes.upload(at, path, content, until),
      async isFull() {
        const { id, upperDirectory } = container;
        if (upperDirectory === undefined || !containers.hasOwnDisk(id)) return false;
        const { freeBytes, freeInodes } = await disks.readSpace(upperDirectory);
        return freeBytes < FULL_BYTES || freeInodes === 0;
      },
      async commit(name) {
        await container.cgroup.freeze();
        try {
          await refuseHoles(container.upperDirectory, disks.findHole);
          await containers.commitLayer(container.id, name);
        } finally {
          container.cgroup.thaw();
        }
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Looks like a sandbox id and belongs to no sandbox. */
export function buildContainerId(buildId: string): string {
  return `b${buildId.replaceAll("-", "")}`;
}

function isLost(error: unknown): error is RpcError {
  return error instanceof RpcError && error.code === "unavailable";
}

async function explained(
  id: string,
  { docker: { containers } }: BuildContainerDeps,
  cause: RpcError,
): Promise<unknown> {
  const found = await containers.inspect(id).catch(() => undefined);
  if (found === undefined || found.running) return cause;
  const why = found.oomKilled ? "it ran out of memory" : "its first process ended";
  return new AppError("sandbox_create_failed", `the build's container is gone: ${why}`, { cause });
}
