/** What happens in the project: its last events, and new ones as they come. */

import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { PlatformEvent } from "../../../shared/api/events.ts";
import { get } from "../base/client.ts";
import { eventName, pairs, time } from "../base/format.ts";
import { watchEvents } from "../base/stream.ts";
import { TextField } from "../parts/field.tsx";
import { Empty, Failure, Screen, Table } from "../parts/parts.tsx";

/** Events that the page holds. */
const MOST = 500;

export function EventsScreen() {
  const [events, setEvents] = useState<readonly PlatformEvent[] | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  const [live, setLive] = useState(false);
  const [filter, setFilter] = useState("");
  useEffect(() => {
    const left = new AbortController();
    const add = (more: readonly PlatformEvent[]) =>
      setEvents((before = []) => {
        const there = new Set(before.map(({ id }) => id));
        const fresh = more.filter(({ id }) => !there.has(id));
        return [...fresh, ...before].sort((a, b) => b.timestamp.localeCompare(a.timestamp)).slice(0, MOST);
      });
    const read = () =>
      void get<PlatformEvent[]>("/events", { limit: 100 }, left.signal).then(
        (more) => {
          setError(undefined);
          add(more);
        },
        (failed: unknown) => left.signal.aborted || setError(failed),
      );
    read();
    const stop = watchEvents({
      event: (event) => add([event]),
      state(isLive, isResumed) {
        setLive(isLive);
        // What happened before this stream is in no event of it.
        if (isLive && !isResumed) read();
      },
    });
    return () => {
      left.abort();
      stop();
    };
  }, []);
  const wanted = filter.toLowerCase();
  const shown = events?.filter((event) => textOf(event).includes(wanted));
  return (
    <Screen title="Events">
      <div class="bar">
        <TextField
          label="Filter"
          type="search"
          value={filter}
          onValue={setFilter}
          placeholder="killed, an id, a reason"
        />
        <p class="small" role="status">
          {live ? "live" : "connecting …"}
        </p>
      </div>
      <Failure of={error} />
      {events?.length === MOST && (
        <p class="small">
          The page holds the last {MOST} events. Earlier ones: <code>svc events</code>.
        </p>
      )}
      {shown?.length === 0 && <Empty title={filter === "" ? "Nothing has happened yet." : "No event is like that."} />}
      {shown !== undefined && shown.length > 0 && (
        <Table
          label="Events"
          items={shown}
          keyOf={({ id }) => id}
          columns={[
            { name: "When", show: ({ timestamp }) => time(timestamp) },
            { name: "What", show: ({ type }) => <span class="strong">{eventName(type)}</span> },
            {
              name: "Sandbox",
              show: ({ sandboxId }) =>
                sandboxId === undefined ? "–" : <Link href={`/sandboxes/${sandboxId}`}>{sandboxId}</Link>,
            },
            { name: "Why and how", show: ({ eventData }) => pairs(eventData) || "–" },
          ]}
        />
      )}
    </Screen>
  );
}

function textOf({ type, sandboxId = "", eventData }: PlatformEvent): string {
  return `${type} ${sandboxId} ${pairs(eventData)}`.toLowerCase();
}
