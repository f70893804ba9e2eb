/** Constructs the live streams of events and the handlers of events. */

import { loop } from "../../shared/program/loop.ts";
import type { Base } from "../base/base.ts";
import type { Store } from "../store/store.ts";
import { createEventHandlers } from "./handlers.ts";
import { createEventStreams } from "./streams.ts";

const DAY_MS = 86_400_000;

/** Time between two looks for events of other orchestrators. */
const LOOK_MS = 1_000;

export function createEvents({ config, now, log, teardown, alone }: Base, store: Store) {
  const streams = createEventStreams({ store, log });
  teardown.add(
    "news of events",
    store.events.onAdded((projectId) => streams.added(projectId)),
  );
  if (!alone) {
    let seen = 0;
    const looking = loop({ name: "events of other orchestrators", everyMs: LOOK_MS, log }, async () => {
      if (streams.size === 0) return;
      const newest = await store.events.newest();
      if (newest !== seen) streams.added();
      seen = newest;
    });
    teardown.add("events of other orchestrators", () => looking.stop());
  }
  return {
    handlers: createEventHandlers({ store, streams, historyMs: config.historyDays * DAY_MS, now }),
    stop: () => streams.stop(),
  };
}
