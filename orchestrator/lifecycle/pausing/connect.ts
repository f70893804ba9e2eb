/** Connect and resume: brings a sandbox to running from any state, or refuses with the reason. */

import { setTimeout as sleep } from "node:timers/promises";
import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import type { Lifetime } from "../ending/timeout.ts";
import { isResuming } from "../record-state.ts";
import type { Resuming } from "./resume.ts";

export interface ConnectAsk {
  readonly seconds: number;
  /** Undefined: as the sandbox's `onResume` says. */
  readonly memory: boolean | undefined;
  readonly onTimeout?: "kill" | "pause" | undefined;
}

interface Connected {
  readonly record: SandboxRecord;
  /** The sandbox was paused when the request came. */
  readonly resumed: boolean;
}

export interface Connecting {
  connect(project: Project, id: string, ask: ConnectAsk): Promise<Connected>;
  /** As `connect`, but 409 for a running sandbox. */
  resume(project: Project, id: string, ask: ConnectAsk): Promise<SandboxRecord>;
}

export interface ConnectingDeps {
  readonly core: Core;
  readonly resuming: Resuming;
  readonly lifetime: Lifetime;
}

const ROUNDS = 4;
/** Pause between two reads of a transition that nobody works on at the moment. */
const AGAIN_MS = 100;

export function createConnecting(deps: ConnectingDeps): Connecting {
  const { store, timeouts } = deps.core;

  async function owned(project: Project, id: string): Promise<SandboxRecord> {
    const record = await store.sandboxes.get(id);
    // One that is being killed ends in any case: as for one that has ended, a caller may start another one.
    const isThere = record?.projectId === project.id && record.state !== "gone" && record.state !== "killing";
    if (!isThere) throw deps.core.history.missing(project, id, record);
    if (record.state === "starting" && !isResuming(record)) {
      throw new AppError("conflict", `Sandbox "${id}" is still starting`);
    }
    return record;
  }

  async function resumePaused(project: Project, record: SandboxRecord, ask: ConnectAsk): Promise<SandboxRecord> {
    const { id } = record;
    const memory = (ask.memory ?? record.onResume !== "reboot") || record.snapshot?.memory === false;
    const resumed = await deps.resuming.resume(id, {
      memory,
      seconds: ask.seconds,
      limit: deps.core.limits.starts(project),
      ...defined({ onTimeout: ask.onTimeout }),
    });
    // A caller that joined another one's resume still needs its own timeout.
    return resumed.own ? resumed.record : deps.lifetime.connect(project, id, ask.seconds);
  }

  /** Waits for the transition under way, here or at another orchestrator. */
  async function rest(id: string): Promise<void> {
    if (!(await deps.core.transitions.settled(id, timeouts.patienceMs))) await sleep(AGAIN_MS);
  }

  async function connect(project: Project, id: string, ask: ConnectAsk): Promise<Connected> {
    for (let round = 0; round < ROUNDS; round++) {
      const record = await owned(project, id);
      switch (record.state) {
        case "running": {
          if (ask.onTimeout !== undefined && ask.onTimeout !== record.onTimeout) {
            throw new AppError("bad_request", "body field 'onTimeout' cannot be changed while the sandbox is running");
          }
          const extended = await extend(project, id, ask.seconds);
          if (extended !== undefined) return { record: extended, resumed: false };
          break;
        }
        case "paused":
        case "starting":
          return { record: await resumePaused(project, record, ask), resumed: true };
        case "pausing":
        case "snapshotting":
        case "rewinding":
        case "killing":
        case "gone":
          break;
      }
      await rest(id);
    }
    throw new AppError("conflict", `Sandbox "${id}" is changing state`);
  }

  /** Undefined: the sandbox is no longer `running`. */
  async function extend(project: Project, id: string, seconds: number): Promise<SandboxRecord | undefined> {
    try {
      return await deps.lifetime.connect(project, id, seconds);
    } catch (reason) {
      if (reason instanceof AppError && (reason.status === 409 || reason.status === 404)) return undefined;
      throw reason;
    }
  }

  return {
    connect,
    async resume(project, id, ask) {
      const { state } = await owned(project, id);
      if (state === "running" || state === "snapshotting") {
        throw new AppError("conflict", `Sandbox "${id}" is already running`);
      }
      return (await connect(project, id, ask)).record;
    },
  };
}
