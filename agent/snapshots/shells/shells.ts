/**
 * Shells: containers of Docker made ahead, with an address that is denied all traffic, for copies of stored memory. Docker,
 * its shim and the network have done their part before a copy is asked for; what is left is its disk and CRIU's restore.
 * No process runs in one. Each is used once: what does not become a sandbox is removed.
 */

import { randomBytes, randomUUID } from "node:crypto";
import type { Log } from "../../../shared/program/log.ts";
import { loop } from "../../../shared/program/loop.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { Docker } from "../../containers/host-docker.ts";
import { type Flavour, flavourKey } from "../../containers/live-container.ts";
import type { Slot } from "../../network/addresses.ts";
import type { Network } from "../../network/host-network.ts";
import type { Slots } from "../../network/slots.ts";
import type { Disposal } from "../../sandboxes/disposal.ts";
import { createDemand } from "./demand.ts";

const ROUND_MS = 60_000;
/** Copies that are made now go first. */
const QUIET_MS = 150;
/** After a failure, which concerns them all: Docker, addresses, a runtime without shells. */
const REST_MS = 30_000;

export interface Shell {
  readonly id: string;
  readonly slot: Slot;
  readonly controlToken: string;
  readonly runtime: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

export interface Shells {
  /** A shell whose `build.image` is the image below the copy's disk; undefined: there is none. The caller owns it. */
  take(flavour: Flavour): Promise<Shell | undefined>;
  /** Makes one ahead: a copy of this flavour comes soon. */
  expect(flavour: Flavour): void;
  /** Ends one that was taken and has not become a sandbox. */
  discard(shell: Shell): Promise<void>;
  /** Call when a container has ended unexpectedly. True when it was one that waited. */
  lost(containerId: string): boolean;
  /** Those that wait. */
  ids(): string[];
  /** Ends all that wait: after a restart of Docker, which does not know them any more. */
  replace(): void;
  stop(): Promise<void>;
}

export interface ShellsDeps {
  readonly docker: Docker;
  readonly network: Network;
  readonly slots: Slots;
  readonly disposal: Pick<Disposal, "remove">;
  /** The most at a time. */
  readonly most: number;
  /** Whether foreground work is under way, or memory is short. */
  readonly busy: () => boolean;
  readonly now: () => number;
  readonly log: Log;
}

export function createShells({ docker, network, slots, disposal, most, busy, now, log }: ShellsDeps): Shells {
  const demand = createDemand();
  const ready = new Map<string, Shell[]>();
  const flavours = new Map<string, Flavour>();
  const state = {
    stopped: false,
    asked: 0,
    restUntil: 0,
    making: undefined as { readonly key: string; readonly done: Promise<void> } | undefined,
  };

  const discard = async (shell: Shell) => {
    // Its program ends with the annotations, and Docker's container with that.
    await docker.annotations
      .remove(shell.id)
      .catch((error: unknown) => log.warn({ err: error, containerId: shell.id }, "could not end a shell"));
    disposal.remove(shell);
  };

  const make = async (flavour: Flavour): Promise<Shell | undefined> => {
    const teardown = new Teardown(log);
    try {
      const { directory, command } = await docker.runtime(flavour.runtime);
      const controlToken = randomBytes(24).toString("hex");
      const createdAt = now();
      const id = await docker.containers.createWithoutDisk({
        name: `svc-shell-${randomUUID().slice(0, 8)}`,
        build: flavour.build,
        resources: flavour.resources,
        command,
        env: [`SVC_ENVD_CONTROL=${controlToken}`],
        runtimeDirectory: directory,
        resolver: network.plan.gateway,
      });
      if (id === undefined) return undefined;
      teardown.add("container", () => docker.containers.remove(id));
      const slot = await slots.take();
      teardown.add("slot", () => slots.give(slot));
      teardown.add("annotations", () => docker.annotations.remove(id));
      await docker.annotations.joinNetwork(id, slot.netnsPath, false);
      await docker.annotations.shell(id);
      await docker.containers.start(id);
      teardown.release();
      return { id, slot, controlToken, runtime: directory, createdAt };
    } catch (error) {
      await teardown.run();
      throw error;
    }
  };

  const count = () => [...ready.values()].reduce((sum, shells) => sum + shells.length, 0);

  /** The flavour that lacks one, that which was asked for last first. */
  const lacking = (): string | undefined => {
    if (count() >= most) return undefined;
    for (const [key, wanted] of demand.wanted(most, now()))
      if ((ready.get(key)?.length ?? 0) < wanted && flavours.has(key)) return key;
    return undefined;
  };

  const dropSurplus = async () => {
    const wanted = demand.wanted(most, now());
    for (const [key, shells] of ready) {
      const surplus = shells.splice(wanted.get(key) ?? 0);
      await Promise.all(surplus.map(discard));
      if (shells.length > 0) continue;
      ready.delete(key);
      if (!wanted.has(key)) flavours.delete(key);
    }
  };

  const fill = async (key: string) => {
    const flavour = flavours.get(key);
    const shell = flavour === undefined ? undefined : await make(flavour);
    // Containers have no disks of their own here.
    if (shell === undefined) state.restUntil = now() + REST_MS;
    else if (state.stopped) await discard(shell);
    else ready.set(key, [...(ready.get(key) ?? []), shell]);
  };

  const refill = (key: string): Promise<void> => {
    const done = fill(key)
      .catch((error: unknown) => {
        state.restUntil = now() + REST_MS;
        log.warn({ err: error }, "could not make a shell ahead: copies start without one");
      })
      .finally(() => {
        state.making = undefined;
        filling.wake();
      });
    state.making = { key, done };
    return done;
  };

  const mayFill = () => !state.stopped && most > 0 && now() >= state.restUntil && state.making === undefined;
  const filling = loop({ name: "shells", everyMs: ROUND_MS, log }, async (signal) => {
    await dropSurplus();
    for (;;) {
      while ((busy() || now() - state.asked < QUIET_MS) && lacking() !== undefined && !signal.aborted)
        await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      const key = mayFill() && !signal.aborted ? lacking() : undefined;
      if (key === undefined) return;
      await refill(key);
    }
  });

  const know = (flavour: Flavour): string => {
    const key = keyOf(flavour);
    flavours.set(key, flavour);
    return key;
  };

  return {
    async take(flavour) {
      if (most === 0) return undefined;
      const key = know(flavour);
      state.asked = now();
      demand.asked(key, state.asked);
      filling.wake();
      if (state.making?.key === key && (ready.get(key)?.length ?? 0) === 0) await state.making.done;
      return ready.get(key)?.shift();
    },
    expect(flavour) {
      if (most === 0) return;
      const key = know(flavour);
      demand.expected(key, now());
      if ((ready.get(key)?.length ?? 0) === 0 && count() < most && mayFill()) void refill(key);
    },
    discard,
    lost(containerId) {
      const shells = [...ready.values()].find((some) => some.some(({ id }) => id === containerId)) ?? [];
      const [shell] = shells.splice(
        shells.findIndex(({ id }) => id === containerId),
        shells.length > 0 ? 1 : 0,
      );
      if (shell === undefined) return false;
      void discard(shell);
      filling.wake();
      return true;
    },
    ids: () => [...ready.values()].flat().map(({ id }) => id),
    replace() {
      const shells = [...ready.values()].flat();
      ready.clear();
      for (const shell of shells) void discard(shell);
      filling.wake();
    },
    async stop() {
      state.stopped = true;
      await filling.stop();
      await state.making?.done;
      await Promise.all([...ready.values()].flat().map(discard));
      ready.clear();
    },
  };
}

/** Docker starts a shell with the size that it was created with. */
function keyOf(flavour: Flavour): string {
  const { cpuCount, memoryMB } = flavour.resources;
  return JSON.stringify([flavourKey(flavour), cpuCount, memoryMB]);
}
