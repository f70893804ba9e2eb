/** The sandbox's log, live: what is new is asked for every two seconds from the newest line on. */

import { useEffect, useState } from "preact/hooks";
import { get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { Choice, TextField } from "../parts/field.tsx";
import { useFollowedEnd } from "../parts/followed-end.ts";
import { Empty, Failure } from "../parts/parts.tsx";
import { type Asked, type Entry, MOST, merged, whyNoLines } from "./log-entries.ts";
import type { TabProps } from "./tab.ts";

const EVERY_MS = 2_000;

export function LogsTab({ sandbox }: TabProps) {
  // With what was asked for: while a new search is read, the page shows the lines of the one before.
  const [shown, setShown] = useState<{ readonly entries: readonly Entry[]; readonly asked: Asked } | undefined>(
    undefined,
  );
  const [error, setError] = useState<unknown>(undefined);
  const [level, setLevel] = useState("");
  const [search, setSearch] = useState("");
  const { sandboxID: id, state } = sandbox;
  useEffect(() => {
    const left = new AbortController();
    const seen = { all: [] as readonly Entry[] };
    const read = async () => {
      if (document.hidden && seen.all.length > 0) return;
      const newest = seen.all.at(-1);
      const { logs } = await get<{ readonly logs: readonly Entry[] }>(
        `/v2/sandboxes/${id}/logs`,
        {
          ...(newest === undefined
            ? { direction: "backward" }
            : { cursor: Date.parse(newest.timestamp), direction: "forward" }),
          level: level === "" ? undefined : level,
          search: search === "" ? undefined : search,
          limit: 1000,
        },
        left.signal,
      );
      seen.all = merged(seen.all, newest === undefined ? logs.toReversed() : logs);
      const { all: entries } = seen;
      setShown((before) => (before?.entries === entries ? before : { entries, asked: { level, search } }));
      setError(undefined);
    };
    const round = () => void read().catch((failed: unknown) => left.signal.aborted || setError(failed));
    round();
    const timer = state === "running" ? setInterval(round, EVERY_MS) : undefined;
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }, [id, state, level, search]);
  const atEnd = useFollowedEnd(shown?.entries);
  return (
    <>
      <div class="bar">
        <TextField label="Search" type="search" value={search} onValue={setSearch} />
        <Choice
          label="Level"
          value={level}
          options={[
            ["", "every"],
            ...["debug", "info", "warn", "error"].map((each) => [each, `${each} and above`] as const),
          ]}
          onValue={setLevel}
        />
      </div>
      <Failure of={error} />
      {shown?.entries.length === MOST && (
        <p class="small">
          The page holds the last {MOST} lines. Earlier ones: search for them, or <code>svc sandbox logs {id}</code>.
        </p>
      )}
      {shown?.entries.length === 0 && <Empty title={whyNoLines(shown.asked, state)} />}
      <div class="lines" tabIndex={0} role="log" aria-label="Log of the sandbox" {...atEnd}>
        {shown?.entries.map(({ timestamp, level: of, message }, index) => (
          <div key={index} class={`line level-${of}`}>
            <time>{time(timestamp)}</time> {message}
          </div>
        ))}
      </div>
    </>
  );
}
