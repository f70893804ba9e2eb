/**
 * Makes the containers of a fork's copies while their source is being stored, for which the fork waits anyway, gives them their disks
 * once that of the source is copied, and begins their start. These containers have no process and no row yet: a copy takes one when it
 * starts, and the agent removes those that no copy takes. After a crash the next agent process removes them, as all containers without a row.
 */

import { randomBytes, randomUUID } from "node:crypto";
import { availableParallelism, loadavg } from "node:os";
import type { Resources } from "../../../shared/agent-api/routes.ts";
import type { Log } from "../../../shared/program/log.ts";
import { sameSize } from "../../containers/cgroup/limits.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Network } from "../../network/host-network.ts";
import type { Slots } from "../../network/slots.ts";
import { snapshotImage } from "../store/docker-images-below.ts";
import { endAhead, type StartAhead, startAhead } from "./start-ahead.ts";

/** The source of a fork. */
interface Source extends Pick<LiveContainer, "build" | "resources" | "runtime"> {
  /** Its memory is stored, and it sees no volumes: the start of a copy can begin before the memory is there. */
  readonly startable: boolean;
}

export interface AheadContainer {
  readonly containerId: string;
  readonly controlToken: string;
  /** Its start, when that has begun. */
  readonly start?: StartAhead;
}

export interface CopiesAhead {
  /** Begins to make them, one after the other; the disk of the source was copied ahead. Never throws. */
  begin(snapshotId: string, source: Source, count: number): void;
  /** The disk of the source is copied and will not change: the containers get theirs, and starts begin, while its memory is written. */
  stored(snapshotId: string): void;
  /** The source runs again: more starts begin, one after the other. Beside the dump, for which it stands still, only idle processors begin some. */
  runs(snapshotId: string): void;
  /** One for a copy of this size, as the source's; undefined: the copy makes its own. From the first copy on no more are made. */
  take(snapshotId: string, wanted: Omit<Source, "build">): Promise<AheadContainer | undefined>;
  /** Ends and removes one that was taken. */
  discard(taken: AheadContainer): Promise<void>;
  /** Removes those that no copy has taken. */
  drop(snapshotId: string): void;
  /** Resolves when all of them are taken or removed. */
  stop(): Promise<void>;
}

interface CopiesAheadDeps {
  readonly docker: Pick<Docker, "containers" | "annotations" | "runtime">;
  readonly network: Pick<Network, "plan">;
  readonly slots: Pick<Slots, "take" | "give">;
  /** Whether the machine has processors left for what a dump does not wait for. */
  readonly idle?: () => boolean;
  readonly log: Log;
}

const PROCESSORS = availableParallelism();
/** Starts that begin while the source stands still. */
const MOST_BESIDE_DUMP = Math.max(1, Math.floor(PROCESSORS / 2));
/** The load of the last minute. On a busy machine a start beside the dump would prolong it. */
const hasIdleProcessors = () => (loadavg()[0] ?? 0) < PROCESSORS;
/** A fork that has begun no copy by then has failed. Shorter than svc-runc lets a start wait for its memory. */
const KEEP_MS = 20_000;

interface Fork {
  readonly source: Source;
  /** Those whose start has begun first, then those with a disk. */
  readonly ready: Made[];
  /** The one that is being made, or is getting its disk, unless a copy waits for it. */
  making: Promise<Made | undefined> | undefined;
  /** How many more to make. */
  left: number;
  /** Whether containers can get their disks now. */
  furnishing: boolean;
  /** How many more starts can begin now. */
  starts: number;
  filling: boolean;
  readonly timer: NodeJS.Timeout;
}

interface Made extends AheadContainer {
  readonly furnished: boolean;
}

export function createCopiesAhead(deps: CopiesAheadDeps): CopiesAhead {
  const { docker, network, slots, idle = hasIdleProcessors, log } = deps;
  const { containers } = docker;
  const forks = new Map<string, Fork>();
  const background = new Set<Promise<void>>();

  const inBackground = (work: Promise<unknown>) => {
    const done = work
      .then(() => undefined)
      .catch((error: unknown) => log.warn({ err: error }, "could not make or remove the container of a copy ahead"))
      .finally(() => background.delete(done));
    background.add(done);
  };

  const make = async (snapshotId: string, { build, resources, runtime: own }: Source) => {
    const { directory, command } = await docker.runtime(own);
    const controlToken = randomBytes(24).toString("hex");
    const containerId = await containers.createAhead({
      name: `svc-copy-${randomUUID().slice(0, 8)}`,
      build: { ...build, image: snapshotImage(snapshotId) },
      resources,
      command,
      env: [`SVC_ENVD_CONTROL=${controlToken}`],
      runtimeDirectory: directory,
      resolver: network.plan.gateway,
    });
    return containerId === undefined ? undefined : { containerId, controlToken, furnished: false };
  };

  const discard = async ({ containerId, start }: AheadContainer) => {
    if (start === undefined) await containers.remove(containerId);
    else await endAhead(containerId, start, { docker, slots });
  };
  const remove = (made: AheadContainer) => inBackground(discard(made));

  const beginStart = async (fork: Fork, made: Made): Promise<Made> => {
    try {
      return { ...made, start: await startAhead(made.containerId, { docker, slots, log }) };
    } catch (error) {
      log.warn({ err: error, containerId: made.containerId }, "could not begin the start of a copy ahead");
      fork.starts = 0;
      return made;
    }
  };

  const furnish = async (snapshotId: string, fork: Fork, bare: Made): Promise<Made> => {
    const { build, resources } = fork.source;
    const spec = { build: { ...build, image: snapshotImage(snapshotId) }, resources };
    try {
      const furnished = await containers.furnishAhead(bare.containerId, spec);
      // The others' disks are as large.
      if (!furnished) fork.furnishing = false;
      return { ...bare, furnished };
    } catch (error) {
      remove(bare);
      throw error;
    }
  };

  /** A start comes before another disk, and a disk before another container. */
  const next = (snapshotId: string, fork: Fork): Promise<Made | undefined> | undefined => {
    const still =
      fork.starts > 0 ? fork.ready.findIndex(({ furnished, start }) => furnished && start === undefined) : -1;
    const [furnished] = still < 0 ? [] : fork.ready.splice(still, 1);
    if (furnished !== undefined) {
      fork.starts--;
      return beginStart(fork, furnished);
    }
    const at = fork.furnishing ? fork.ready.findIndex(({ furnished }) => !furnished) : -1;
    const [bare] = at < 0 ? [] : fork.ready.splice(at, 1);
    if (bare !== undefined) return furnish(snapshotId, fork, bare);
    if (fork.left === 0) return undefined;
    fork.left--;
    return make(snapshotId, fork.source);
  };

  const put = (fork: Fork, made: Made) => {
    const at = fork.ready.findIndex((one) => progress(one) < progress(made));
    fork.ready.splice(at >= 0 ? at : fork.ready.length, 0, made);
  };

  const fill = async (snapshotId: string, fork: Fork) => {
    if (fork.filling) return;
    fork.filling = true;
    for (let making = next(snapshotId, fork); making !== undefined; making = next(snapshotId, fork)) {
      fork.making = making;
      const made = await making;
      // A copy has taken it while it was being made.
      if (fork.making !== making) return;
      fork.making = undefined;
      if (made === undefined) return;
      if (forks.get(snapshotId) === fork) put(fork, made);
      else remove(made);
      await made.start?.waits;
    }
    fork.filling = false;
  };

  const drop = (snapshotId: string) => {
    const fork = forks.get(snapshotId);
    if (fork === undefined) return;
    forks.delete(snapshotId);
    clearTimeout(fork.timer);
    fork.left = 0;
    fork.furnishing = false;
    fork.starts = 0;
    for (const made of fork.ready.splice(0)) remove(made);
  };

  return {
    begin(snapshotId, source, count) {
      drop(snapshotId);
      const timer = setTimeout(() => drop(snapshotId), KEEP_MS).unref();
      const state = { ready: [], making: undefined, left: count, furnishing: false, starts: 0, filling: false };
      const fork: Fork = { source, ...state, timer };
      forks.set(snapshotId, fork);
      inBackground(fill(snapshotId, fork));
    },
    stored(snapshotId) {
      const fork = forks.get(snapshotId);
      if (fork === undefined) return;
      fork.furnishing = true;
      if (fork.source.startable && idle()) fork.starts = MOST_BESIDE_DUMP;
      inBackground(fill(snapshotId, fork));
    },
    runs(snapshotId) {
      const fork = forks.get(snapshotId);
      if (fork === undefined || !fork.source.startable) return;
      fork.starts = Number.POSITIVE_INFINITY;
      inBackground(fill(snapshotId, fork));
    },
    async take(snapshotId, { resources, runtime, startable }) {
      const fork = forks.get(snapshotId);
      if (fork === undefined) return undefined;
      // Copies that make their own at the same time are faster than one after the other here.
      fork.left = 0;
      fork.furnishing = false;
      fork.starts = 0;
      if (fork.source.runtime !== runtime || !sameResources(fork.source.resources, resources)) return undefined;
      const fits = ({ start }: Made) => start === undefined || (startable && !start.isOver());
      for (let made = fork.ready.shift(); made !== undefined; made = fork.ready.shift()) {
        if (fits(made)) return made;
        remove(made);
      }
      const { making } = fork;
      fork.making = undefined;
      const made = await making?.catch(() => undefined);
      if (made === undefined || fits(made)) return made;
      remove(made);
      return undefined;
    },
    discard,
    drop,
    async stop() {
      for (const id of forks.keys()) drop(id);
      while (background.size > 0) await Promise.all(background);
    },
  };
}

function progress({ furnished, start }: Made): number {
  if (start !== undefined) return 2;
  return furnished ? 1 : 0;
}

function sameResources(one: Resources, other: Resources): boolean {
  return sameSize(one, other) && one.diskSizeMB === other.diskSizeMB;
}
