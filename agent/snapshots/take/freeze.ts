/**
 * Freezes a sandbox for a snapshot. A process that is inside a long call of the kernel, such as one large write to a slow disk, stands
 * still only when that ends.
 */

import { AppError, isError } from "../../../shared/http/errors.ts";
import type { Cgroup } from "../../containers/cgroup/cgroup.ts";

/** Each of them waits for two seconds, and none of them lets a process go on. */
const TRIES = 5;

/**
 * As `freezeForSnapshot`, beside other work. Rejects only when both have ended: another try, after the caller has thawed the sandbox,
 * would freeze it for ever.
 */
export async function freezeBeside(cgroup: Pick<Cgroup, "freeze">, work: Promise<unknown>): Promise<void> {
  const freezing = freezeForSnapshot(cgroup);
  await Promise.allSettled([work, freezing]);
  await work;
  await freezing;
}

/** @throws {AppError} unavailable; the caller thaws it */
export async function freezeForSnapshot(cgroup: Pick<Cgroup, "freeze">): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await cgroup.freeze();
      return;
    } catch (cause) {
      if (!isError(cause, "internal")) throw cause;
      if (tries < TRIES) continue;
      const why = "a process of the sandbox did not stand still within 10 s, as while it waits for a slow disk";
      throw new AppError("unavailable", `${why}; it goes on running: try again`, { cause });
    }
  }
}
