/** The end of a container: killed while the caller waits, removed in the background until it has worked. */

import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../shared/program/log.ts";
import { createTurns } from "../../shared/program/semaphore.ts";
import type { Marks } from "../containers/annotations.ts";
import type { Containers } from "../containers/containers.ts";
import type { Gate } from "../network/gate.ts";
import type { Slots } from "../network/slots.ts";
import type { ContainerStore } from "../store/containers.ts";
import type { LiveContainer } from "./live-container.ts";

/** A removal is a tenth of a second of the engine's time; foreground work goes first. */
const REMOVALS_AT_ONCE = 2;
/** How long the engine may take to hear that a container has ended, before it is asked to remove it in any case. */
const NOTICE_LIMIT_MS = 15_000;
const NOTICE_POLL_MS = 30;

export interface DisposalDeps {
  readonly containers: Pick<Containers, "kill" | "remove" | "inspect">;
  readonly slots: Pick<Slots, "give">;
  readonly gate: Pick<Gate, "close">;
  readonly marks: Pick<Marks, "remove">;
  readonly store: Pick<ContainerStore, "remove">;
  readonly log: Log;
}

type Doomed = Pick<LiveContainer, "id" | "slot" | "cgroup">;

export interface Disposal {
  /** Resolves when nothing inside runs any more and nothing it sent is let through. */
  kill(container: Doomed): Promise<void>;
  /** Of a dead container: engine object, slot, mark, row. In the background. */
  remove(container: Doomed): void;
  /** Tries again what failed, for example because the engine was away. */
  retry(): void;
  readonly pending: number;
  /** Waits for what is under way. */
  settled(): Promise<void>;
}

export function createDisposal({ containers, slots, gate, marks, store, log }: DisposalDeps): Disposal {
  const turns = createTurns(REMOVALS_AT_ONCE);
  const running = new Map<string, Promise<void>>();
  const failed = new Map<string, Doomed>();
  const given = new Set<string>();

  // An engine that hears of the end while it removes writes the container back, and shows it as `removing` for ever.
  const untilNoticed = async (id: string) => {
    for (let waited = 0; waited < NOTICE_LIMIT_MS; waited += NOTICE_POLL_MS) {
      if ((await containers.inspect(id))?.running !== true) return;
      await delay(NOTICE_POLL_MS);
    }
  };

  const remove = async (container: Doomed) => {
    const { id, slot } = container;
    const done = await turns.take(new AbortController().signal);
    try {
      await untilNoticed(id);
      await containers.remove(id);
      // Only now: the namespace is free when the last process in it is gone.
      if (!given.has(id)) {
        await gate.close(slot);
        await slots.give(slot);
      }
      given.add(id);
      await marks.remove(id);
      store.remove(id);
      given.delete(id);
    } catch (error) {
      log.warn({ err: error, containerId: id }, "container not removed yet");
      failed.set(id, container);
    } finally {
      done();
      running.delete(id);
    }
  };

  const begin = (container: Doomed) => {
    if (!running.has(container.id)) running.set(container.id, remove(container));
  };

  return {
    async kill({ id, slot, cgroup }) {
      const closed = gate.close(slot).catch((error: unknown) => log.error({ err: error }, "slot not closed"));
      try {
        await cgroup.kill();
      } catch (error) {
        log.warn({ err: error, containerId: id }, "container did not die by signal, asking the engine");
        await containers.kill(id);
      }
      await closed;
    },
    remove: begin,
    retry() {
      const again = [...failed.values()];
      failed.clear();
      for (const container of again) begin(container);
    },
    get pending() {
      return running.size + failed.size;
    },
    async settled() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
