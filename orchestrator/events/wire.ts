/** Constructs the live streams of events and the handlers of events. */

import type { Base } from "../base/base.ts";
import type { Store } from "../store/store.ts";
import { createEventHandlers } from "./handlers.ts";
import { createEventStreams } from "./streams.ts";

const DAY_MS = 86_400_000;

export function createEvents({ config, now, log, teardown }: Base, store: Store) {
  const streams = createEventStreams({ store, log });
  teardown.add(
    "news of events",
    store.events.onAdded((projectId) => streams.added(projectId)),
  );
  return {
    handlers: createEventHandlers({ store, streams, historyMs: config.historyDays * DAY_MS, now }),
    stop: () => streams.stop(),
  };
}
