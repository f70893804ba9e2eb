/** The log of a build, which grows while one looks at it. */

import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import type { buildApi } from "../../../shared/api/builds.ts";
import { get, type Reply } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { useFollowedEnd } from "../parts/followed-end.ts";
import { Empty, Failure, State } from "../parts/parts.tsx";

type Status = Reply<typeof buildApi.buildStatus>;

/** What the Dockerfile of the build that was begun here asks for and a sandbox does not have. */
export const notesOf = signal<{ readonly buildID: string; readonly notes: readonly string[] } | undefined>(undefined);

const EVERY_MS = 1_000;
const PAGE = 100;
/** Lines that the page draws. */
const MOST = 5_000;

export function BuildLog({ path, buildId }: { readonly path: string; readonly buildId: string }) {
  const [ended, setEnded] = useState(false);
  const known = useRef<Status["logEntries"]>([]);
  const loaded = useLoaded(
    async (signal) => {
      for (;;) {
        const query = { logsOffset: known.current.length, limit: PAGE };
        const status = await get<Status>(`${path}/builds/${buildId}/status`, query, signal);
        // A reading that was left is done again by the next one.
        signal.throwIfAborted();
        known.current = [...known.current, ...status.logEntries];
        if (status.logEntries.length > 0) continue;
        setEnded(status.status === "ready" || status.status === "error");
        return { ...status, logEntries: known.current };
      }
    },
    [path, buildId],
    ended ? undefined : EVERY_MS,
  );
  const status = loaded.value;
  const count = status?.logEntries.length ?? 0;
  const atEnd = useFollowedEnd(count);
  const notes = notesOf.value?.buildID === buildId ? notesOf.value.notes : [];
  return (
    <>
      <h2>
        Log of build {buildId.slice(0, 8)} {status !== undefined && <State of={status.status} />}
      </h2>
      <Failure of={loaded.error} />
      {notes.map((note) => (
        <p key={note} class="small">
          {note}
        </p>
      ))}
      {status?.reason !== undefined && (
        <p class="failure" role="alert">
          {status.reason.message} {status.reason.step}
        </p>
      )}
      {count > MOST && (
        <p class="small">
          Of {count} lines the last {MOST} are shown.
        </p>
      )}
      {count === 0 && status !== undefined && <Empty title="This build has written nothing yet." />}
      <div class="lines" tabIndex={0} role="log" aria-label="Log of the build" {...atEnd}>
        {status?.logEntries.slice(-MOST).map(({ timestamp, level, message }, index) => (
          <div key={index} class={`line level-${level}`}>
            <time>{time(timestamp)}</time> {message}
          </div>
        ))}
      </div>
    </>
  );
}
