/**
 * Questions that had no answer, for the log of decisions. A sandbox may ask for a new name with every packet: new ones
 * are logged at a rate, further ones only counted, and one that was logged is repeated once a minute, with its count.
 */

import { LRUCache } from "lru-cache";
import { bucket } from "../../../shared/program/bucket.ts";
import { type Decisions, decisionBatches, entryKey, type SayDecisions } from "../channel/decisions.ts";

const NEW_AT_ONCE = 30;
const NEW_A_SECOND = 1;
const REPEATED_EVERY_MS = 60_000;
/** More than can be new within the time in which an entry counts as repeated. */
const MOST_REMEMBERED = 256;

export function openQuestionLog(say: SayDecisions, now = Date.now): Decisions {
  const fresh = decisionBatches(say, now);
  const repeated = decisionBatches(say, now, REPEATED_EVERY_MS);
  const pace = bucket(NEW_AT_ONCE, NEW_A_SECOND, now);
  /** When each entry was last logged as a new one. */
  const logged = new LRUCache<string, number>({ max: MOST_REMEMBERED });
  return {
    note(entry) {
      const key = entryKey(entry);
      const at = logged.get(key);
      if (at !== undefined && now() - at < REPEATED_EVERY_MS) return repeated.note(entry);
      if (!pace.take()) return fresh.omit();
      logged.set(key, now());
      fresh.note(entry);
    },
    omit: () => fresh.omit(),
    flush() {
      fresh.flush();
      repeated.flush();
    },
  };
}
