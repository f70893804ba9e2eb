/** Ends containers: kills while the caller waits, removes in the background until it succeeds. */

import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../shared/program/log.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { Docker } from "../containers/host-docker.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { Gate } from "../network/gate.ts";
import type { Slots } from "../network/slots.ts";
import type { Stores } from "../store/stores.ts";

/** Few at once: a removal takes a tenth of a second of Docker's time, and foreground work goes first. */
const REMOVALS_AT_ONCE = 2;
/** How long Docker may take to notice that a container has ended; then its removal is requested anyway. */
const NOTICE_LIMIT_MS = 15_000;
const NOTICE_POLL_MS = 30;

export interface DisposalDeps {
  readonly docker: Docker;
  readonly slots: Slots;
  readonly gate: Gate;
  readonly stores: Stores;
  readonly log: Log;
}

type Doomed = Pick<LiveContainer, "id" | "slot" | "cgroup">;

export interface Disposal {
  /** Resolves when no process inside runs and nothing that it sent passes. */
  kill(container: Doomed): Promise<void>;
  /** Removes a dead container's parts in the background: Docker object, slot, annotations, row. */
  remove(container: Doomed): void;
  /** Retries failed removals, for example after an outage of Docker. */
  retry(): void;
  readonly pending: number;
  /** Waits for the removals under way. */
  settled(): Promise<void>;
}

export function createDisposal({ docker, slots, gate, stores, log }: DisposalDeps): Disposal {
  const { containers, annotations } = docker;
  const semaphore = createSemaphore(REMOVALS_AT_ONCE);
  const running = new Map<string, Promise<void>>();
  const failed = new Map<string, Doomed>();
  const given = new Set<string>();

  // If Docker notices the end during a removal, it writes the container back and lists it as `removing` for ever.
  const untilNoticed = async (id: string) => {
    for (let waited = 0; waited < NOTICE_LIMIT_MS; waited += NOTICE_POLL_MS) {
      if ((await containers.inspect(id))?.running !== true) return;
      await delay(NOTICE_POLL_MS);
    }
  };

  const remove = async (container: Doomed) => {
    const { id, slot } = container;
    const done = await semaphore.take(new AbortController().signal);
    try {
      await untilNoticed(id);
      await containers.remove(id);
      // The slot comes after the container, because its namespace is free only when the last process in it has ended.
      if (!given.has(id)) {
        await gate.close(slot);
        await slots.give(slot);
      }
      given.add(id);
      await annotations.remove(id);
      stores.containers.remove(id);
      given.delete(id);
    } catch (error) {
      log.warn({ err: error, containerId: id }, "could not remove a container yet");
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
      const closed = gate
        .close(slot)
        .catch((error: unknown) => log.error({ err: error }, "could not close a network slot"));
      try {
        await cgroup.kill();
      } catch (error) {
        log.warn({ err: error, containerId: id }, "a container did not die by signal, asking Docker to kill it");
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
