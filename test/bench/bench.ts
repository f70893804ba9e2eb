/** The context that every measurement receives, a stopwatch, and the wait for a full warm pool. */

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type ContainerInfo, containersOf, poolSizes } from "../support/platform/host-objects.ts";
import type { Platform } from "../support/platform/platform.ts";
import { run } from "../support/platform/programs.ts";
import { until } from "../support/runner/until.ts";
import type { Row } from "./numbers.ts";

export interface Bench {
  readonly platform: Platform;
  /** Takes few samples: they show that the bench works, not how fast the platform is. */
  readonly quick: boolean;
  /** Measures where the default reckons from less: takes much longer. */
  readonly full: boolean;
  /** Prints one line of progress. */
  readonly say: (line: string) => void;
}

export type Measurement = (bench: Bench) => Promise<readonly Row[]>;

/** Milliseconds that `action` took. */
export async function timed(action: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await action();
  return performance.now() - started;
}

/** The default of SVC_POOL_SIZE: the pool keeps this many containers ready when no request has come for a while. */
export const POOL = 3;

/** A node reports at least this often. */
const REPORT_MS = 6_000;

/** After the pool is full the node still tidies up after the last start. */
const REST_MS = 500;

/**
 * Waits until the warm pool holds this many frozen, unclaimed containers, of any build or of `buildId` alone, and then for
 * the node to rest.
 */
export async function untilPoolHolds(platform: Platform, wanted: number, buildId?: string): Promise<void> {
  const label = buildId === undefined ? "svc.build" : `svc.build=${buildId}`;
  const holds = async () => {
    const ids = await run("docker", ["ps", "-q", "--no-trunc", "--filter", `label=${label}`]);
    const all = await containersOf(platform);
    const pool = all.filter(({ id, name }) => name.startsWith("svc-pool-") && ids.includes(id));
    const frozen = await Promise.all(pool.map(isFrozen));
    return frozen.filter(Boolean).length >= wanted;
  };
  await until(holds, { what: `a warm pool of ${wanted}`, timeoutMs: 120_000 });
  await sleep(REST_MS);
}

/** Waits until the node's pool holds what the demand asks for, or what its memory allows. Resolves with how many that are. */
export async function untilPoolIsFull(platform: Platform): Promise<number> {
  const pool = { ready: 0 };
  const full = async () => {
    const { ready, wanted } = await poolSizes(platform);
    pool.ready = ready;
    return ready >= Math.max(wanted, POOL);
  };
  // The node hears of a burst with the answer to its next report.
  await sleep(REPORT_MS);
  await until(full, { what: "a full warm pool", timeoutMs: 300_000 });
  await sleep(REST_MS);
  return pool.ready;
}

async function isFrozen({ id }: ContainerInfo): Promise<boolean> {
  const candidates = [
    `/sys/fs/cgroup/freezer/docker/${id}/freezer.state`,
    `/sys/fs/cgroup/system.slice/docker-${id}.scope/cgroup.freeze`,
    `/sys/fs/cgroup/docker/${id}/cgroup.freeze`,
  ];
  for (const path of candidates) {
    const text = await readFile(path, "utf8").catch(() => undefined);
    if (text !== undefined) return ["FROZEN", "1"].includes(text.trim());
  }
  return false;
}
