/** Whether the database can be written: learned from every round of marks and every failed move, and kept for the health page. */

import { AppError } from "../../shared/http/errors.ts";
import { fullDisk, type StorageFailure, storageFailure } from "../../shared/http/storage-failures.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Ballast } from "./sqlite/ballast.ts";

export interface Condition {
  /** In words; undefined: the last write succeeded. */
  readonly problem: string | undefined;
  /** @throws {AppError} no_space, unavailable: nothing new may begin */
  admit(): void;
  /** Runs a write that must not wait for room: on a full disk once more, in the room that was held back. */
  essential<T>(write: () => Promise<T>): Promise<T>;
  /** One round: writes, and holds room back again. */
  check(write: () => Promise<void>): Promise<void>;
}

export function createCondition(ballast: Ballast, log: Log): Condition {
  const state = { failure: undefined as StorageFailure | undefined };

  const failed = (error: unknown): StorageFailure | undefined => {
    const found = storageFailure(error);
    if (found === undefined) return undefined;
    // The file that holds room back is on the database's disk.
    const failure = found.code === "no_space" ? fullDisk("database") : found;
    if (state.failure?.message !== failure.message) log.error({ err: error }, failure.message);
    state.failure = failure;
    return failure;
  };

  return {
    get problem() {
      return state.failure?.message;
    },
    admit() {
      if (state.failure !== undefined) throw new AppError(state.failure.code, state.failure.message);
    },
    async essential(write) {
      try {
        return await write();
      } catch (error) {
        if (failed(error)?.code !== "no_space" || !ballast.release()) throw error;
        log.warn("released the room that is held back for kills and pauses");
        return write();
      }
    },
    async check(write) {
      try {
        await write();
        ballast.keep();
      } catch (error) {
        if (failed(error) === undefined) throw error;
        return;
      }
      if (state.failure !== undefined) log.info("the database can be written again");
      state.failure = undefined;
    },
  };
}
