/** Writes to the agent's database that must succeed in the end, also when the disk is full now. */

import { setTimeout as delay } from "node:timers/promises";
import { AppError, isError } from "../../../shared/http/errors.ts";

const AGAIN_MS = 250;

interface WhenRoomOptions {
  /** Asked before each further attempt; true: the error of the last one is thrown. */
  readonly giveUp: () => boolean;
  /** Called after the first attempt that failed: may make room. */
  readonly onFull?: () => void;
}

/** Repeats the write while the disk is full. The first attempt is made before this function returns. */
export async function whenRoom(write: () => void, { giveUp, onFull }: WhenRoomOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return write();
    } catch (error) {
      if (!isError(AppError.from(error), "no_space") || giveUp()) throw error;
      if (attempt === 1) onFull?.();
      await delay(AGAIN_MS);
    }
  }
}
