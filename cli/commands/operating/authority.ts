/** `svc rotate ca`: has the authority of the certificates between machines replaced, and follows that to its end. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";

type Rotation = Reply<"GET /admin/rotation/authority">;

const POLL_MS = 2_000;

const STATES: Readonly<Record<Rotation["state"], string>> = {
  single: "done",
  trusting: "both authorities are trusted, the former one signs",
  signing: "the new authority signs, certificates of the former one are renewed",
};

export const replaceAuthority: Action = async ({ admin, out, signal }, _args, options) => {
  const api = await admin();
  let state: Rotation = await api.call("POST /admin/rotation/authority", {});
  out.note("Nothing restarts, and open connections stay. A run that is ended is repeated with the same command.");
  let told = "";
  while (state.state !== "single" && options.detach !== true) {
    const now = progress(state);
    if (now !== told) out.note(now);
    told = now;
    await sleep(POLL_MS, undefined, { signal });
    state = await api.call("GET /admin/rotation/authority", {});
  }
  if (await out.structured(state, options)) return;
  await out.line(
    state.state === "single" ? `authority/${state.digest} signs, the former one is dropped` : progress(state),
  );
};

/** Machines that are named; of more only the number is. */
const MOST_NAMED = 3;

/** Pure. */
export function progress({ state, waitsFor }: Pick<Rotation, "state" | "waitsFor">): string {
  const named = waitsFor
    .slice(0, MOST_NAMED)
    .map(({ kind, id, reason }) => `${id === "" ? kind : `${kind} ${id}`} ${reason}`);
  const more = waitsFor.length > MOST_NAMED ? [`and ${waitsFor.length - MOST_NAMED} more`] : [];
  const waits = [...named, ...more];
  return `${STATES[state]}${waits.length === 0 ? "" : `; waits: ${waits.join(", ")}`}`;
}
