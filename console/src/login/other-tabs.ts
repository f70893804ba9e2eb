/**
 * The tabs of a browser have one cookie. When another tab logs in or out, this one shows whose session that is now: it would
 * show one project under the name of another, and change it.
 */

import { effect } from "@preact/signals";
import { becomeAsOtherTab, session, whose } from "../base/session.ts";

export function followOtherTabs(): void {
  const channel = openChannel();
  if (channel === undefined) return;
  channel.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    if (data !== whose(session.value)) void becomeAsOtherTab();
  });
  effect(() => {
    const now = whose(session.value);
    if (now !== undefined) channel.postMessage(now);
  });
}

/** Undefined: Firefox refuses it where cookies are blocked. There is no log-in then that tabs could have together. */
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel("svc console");
  } catch {
    return undefined;
  }
}
