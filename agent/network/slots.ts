/**
 * Allocates network slots: a few are prepared ahead, each is destroyed after use, and its address rests, so that a late
 * packet or a pooled socket of the last sandbox never reaches the next one.
 */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { FIRST_SLOT, type Plan, type Slot } from "./addresses.ts";
import type { Firewall } from "./firewall.ts";
import type { Links } from "./links.ts";

/** How long an address rests before it is used again. */
const REST_MS = 3_000;

export interface Slots {
  /** A slot whose address is pinned and whose traffic is denied. */
  take(): Promise<Slot>;
  /** Ends the traffic at once; link and namespace are removed in the background. */
  give(slot: Slot): Promise<void>;
  /** Called at start, before the first `take`. Leftover slots, which have no owner, are destroyed once `free` resolves. */
  adopt(used: readonly number[], leftovers: readonly number[], free: Promise<void>): void;
  /** Slots in use or resting, without the prepared ones. */
  readonly taken: number;
  /** Waits for work under way and destroys the prepared slots. */
  stop(): Promise<void>;
}

export interface SlotsDeps {
  readonly plan: Plan;
  readonly links: Links;
  readonly firewall: Pick<Firewall, "pin" | "forget">;
  readonly log: Log;
  /** How many to keep prepared. */
  readonly ahead: number;
  readonly restMs?: number;
}

export function createSlots({ plan, links, firewall, log, ahead, restMs = REST_MS }: SlotsDeps): Slots {
  const used = new Set<number>();
  const ready: Slot[] = [];
  const timers = new Map<number, NodeJS.Timeout>();
  const state = { preparing: undefined as Promise<void> | undefined, stopped: false, next: FIRST_SLOT };

  const reserve = (): Slot => {
    for (let tried = FIRST_SLOT; tried <= plan.lastSlot; tried++) {
      const number = state.next;
      // Numbers go round rather than lowest first, so that the longest unused address comes next.
      state.next = number >= plan.lastSlot ? FIRST_SLOT : number + 1;
      if (used.has(number)) continue;
      used.add(number);
      return plan.slot(number);
    }
    throw new AppError(
      "node_busy",
      `the node has no address left: all ${plan.lastSlot - FIRST_SLOT + 1} of its subnet are in use`,
    );
  };

  const make = async (): Promise<Slot> => {
    const slot = reserve();
    try {
      await links.add(slot);
      await firewall.pin(slot);
      return slot;
    } catch (error) {
      await destroy(slot);
      throw error;
    }
  };

  const destroy = async (slot: Slot) => {
    try {
      await firewall.forget(slot);
      await links.remove(slot);
    } catch (error) {
      // The number stays reserved, so the leftover gets no new owner; the next start of the agent removes it.
      log.error({ err: error, slot: slot.number }, "could not remove a network slot");
      return;
    }
    if (state.stopped) return;
    const timer = setTimeout(() => {
      timers.delete(slot.number);
      used.delete(slot.number);
    }, restMs);
    timer.unref();
    timers.set(slot.number, timer);
  };

  const prepare = () => {
    if (state.stopped) return;
    state.preparing ??= (async () => {
      try {
        while (ready.length < ahead && !state.stopped) ready.push(await make());
      } catch (error) {
        log.warn({ err: error }, "could not prepare a network slot");
      } finally {
        state.preparing = undefined;
      }
    })();
  };

  const givingBack = new Set<Promise<void>>();

  return {
    async take() {
      const slot = ready.shift() ?? (await make());
      prepare();
      return slot;
    },
    async give(slot) {
      await firewall
        .forget(slot)
        .catch((error: unknown) => log.error({ err: error }, "could not close a network slot"));
      const done = destroy(slot).finally(() => givingBack.delete(done));
      givingBack.add(done);
    },
    adopt(kept, leftovers, free) {
      for (const number of [...kept, ...leftovers]) used.add(number);
      const cleared = free
        .then(async () => {
          for (const number of leftovers) await destroy(plan.slot(number));
        })
        .finally(() => givingBack.delete(cleared));
      givingBack.add(cleared);
      prepare();
    },
    get taken() {
      return used.size - ready.length;
    },
    async stop() {
      state.stopped = true;
      await state.preparing;
      await Promise.all(givingBack);
      for (const timer of timers.values()) clearTimeout(timer);
      for (const slot of ready.splice(0)) await destroy(slot);
    },
  };
}
