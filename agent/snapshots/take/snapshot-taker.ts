/** Takes snapshots: one of an execution at a time; repeated requests share its result, also after its end. */

import type { TakenSnapshot, TakeSnapshotBody } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { keepPart } from "../../../shared/program/tracing/spans.ts";
import { createTiming } from "../../../shared/program/tracing/timing.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Sandboxes } from "../../sandboxes/sandboxes.ts";
import type { SnapshotStore } from "../../store/snapshots.ts";
import type { SnapshotRequest } from "./memory-to-disk.ts";
import { toTakenSnapshot } from "./memory-to-disk.ts";

type BeforeEnd = (sandbox: Sandbox) => Promise<void>;

/** What is done to one sandbox for a snapshot. */
export interface Taking {
  readonly pause: (sandbox: Sandbox, request: SnapshotRequest, beforeEnd: BeforeEnd) => Promise<TakenSnapshot>;
  readonly checkpoint: (sandbox: Sandbox, request: SnapshotRequest) => Promise<TakenSnapshot>;
  /** Called around each dump. */
  readonly storing: <T>(sandbox: Sandbox, work: () => Promise<T>) => Promise<T>;
  /** The last page of a lazy restore is in: before that its memory cannot be dumped. */
  readonly complete: (sandbox: Sandbox) => Promise<void>;
}

export interface SnapshotTakerDeps {
  readonly sandboxes: Sandboxes;
  readonly snapshots: SnapshotStore;
  readonly taking: Taking;
  /** Reads the last log lines. Never throws, and its time is limited. */
  readonly beforeEnd: BeforeEnd;
  /** Undefined where this node can store memory. */
  readonly memoryRefusal: (what: string) => AppError | undefined;
  /** @throws {AppError} no_space */
  readonly admit: (sandbox: Sandbox, request: SnapshotRequest, kind: SnapshotKind) => Promise<() => void>;
  /** Called around each snapshot, where the sandbox may be frozen. @throws {AppError} unavailable */
  readonly around: <T>(sandbox: Sandbox, of: TakenPart, work: () => Promise<T>) => Promise<T>;
  readonly onChange: () => void;
}

export interface SnapshotTaker {
  pause(executionId: string, body: TakeSnapshotBody): Promise<TakenSnapshot>;
  checkpoint(executionId: string, body: TakeSnapshotBody): Promise<TakenSnapshot>;
  /** Waits for the snapshots under way. */
  drain(): Promise<void>;
}

type SnapshotKind = "pause" | "checkpoint";

interface TakenPart {
  readonly kind: SnapshotKind;
  readonly memory: boolean;
}

export function createSnapshotTaker(deps: SnapshotTakerDeps): SnapshotTaker {
  const { sandboxes, snapshots, taking, beforeEnd, memoryRefusal, admit, around, onChange } = deps;
  const under = new Map<string, { kind: SnapshotKind; snapshotId: string; done: Promise<TakenSnapshot> }>();

  const earlier = (executionId: string, snapshotId: string, kind: SnapshotKind): TakenSnapshot | undefined => {
    const known = snapshots.get(snapshotId);
    if (known === undefined) return undefined;
    if (known.executionId !== executionId || known.kind !== kind || known.state === "taking")
      throw new AppError("conflict", `snapshot ${snapshotId} exists already, of another execution or kind`);
    return toTakenSnapshot(known);
  };

  const take = async (kind: SnapshotKind, executionId: string, body: TakeSnapshotBody): Promise<TakenSnapshot> => {
    const current = under.get(executionId);
    if (current !== undefined) {
      if (current.kind === kind && current.snapshotId === body.snapshotId) return current.done;
      throw new AppError(
        "conflict",
        `snapshot ${current.snapshotId} of the sandbox is being taken: try again when it is done`,
      );
    }
    const done = earlier(executionId, body.snapshotId, kind);
    if (done !== undefined) return done;
    const sandbox = sandboxes.get(executionId);
    if (sandbox === undefined)
      throw new AppError("sandbox_not_found", `execution ${executionId} does not run on this node`);
    const refusal = body.memory
      ? memoryRefusal(kind === "pause" ? "a pause with memory" : "a fork or a snapshot with memory")
      : undefined;
    if (refusal !== undefined) throw refusal;
    const timing = createTiming(keepPart);
    const { snapshotId, memory, durable, copies, frozen } = body;
    const request = { snapshotId, memory, durable, copies, frozen, timing };
    const work = async () => {
      const admitted = await timing.measure("admit", () => admit(sandbox, request, kind));
      try {
        const result = await around(sandbox, { kind, memory }, taken);
        return { ...result, times: Object.fromEntries(timing.parts()) };
      } finally {
        admitted();
      }
    };
    const taken = async () => {
      // Must come while the sandbox can still be reached.
      await timing.measure("pages", () => taking.complete(sandbox));
      const storing = <T>(one: () => Promise<T>) => (request.memory ? taking.storing(sandbox, one) : one());
      return kind === "pause"
        ? sandboxes.leave(executionId, (leaving) => storing(() => taking.pause(leaving, request, beforeEnd)))
        : storing(() => taking.checkpoint(sandbox, request));
    };
    const shared = work()
      .catch((reason: unknown) => {
        throw whyNotTaken(reason, sandbox);
      })
      .finally(() => {
        under.delete(executionId);
        onChange();
      });
    under.set(executionId, { kind, snapshotId: body.snapshotId, done: shared });
    return shared;
  };

  return {
    pause: (executionId, body) => take("pause", executionId, body),
    checkpoint: (executionId, body) => take("checkpoint", executionId, body),
    async drain() {
      await Promise.allSettled([...under.values()].map(({ done }) => done));
    },
  };
}

/** The files of a container that has just ended are gone, and each step that reads one fails in its own words. */
function whyNotTaken(reason: unknown, { container }: Sandbox): unknown {
  if (reason instanceof AppError || container.cgroup.alive()) return reason;
  return new AppError("conflict", "the sandbox ended while its state was being stored", { cause: reason });
}
