/**
 * The screen of a sandbox that has one: live, through the console's own way to the sandbox's processes, to watch only until somebody
 * takes it over; or, where that cannot be had, a picture a second.
 */

import { useCallback, useState } from "preact/hooks";
import type { TabProps } from "../tab.ts";
import { HandOver } from "./hand-over.tsx";
import { LiveScreen } from "./live.tsx";
import { Pictures } from "./pictures.tsx";

/** Why there are pictures, and whether even they cannot be had. */
type Instead = { readonly why: unknown; readonly hasNone: boolean } | undefined;

export function ShownScreen({ sandbox, again }: TabProps) {
  const { sandboxID: id } = sandbox;
  const [instead, setInstead] = useState<Instead>(undefined);
  const giveUp = useCallback((why: unknown) => setInstead({ why, hasNone: false }), []);
  const none = useCallback(() => setInstead((before) => before && { ...before, hasNone: true }), []);
  return (
    <>
      {instead === undefined ? (
        <LiveScreen id={id} instead={giveUp} ended={again} />
      ) : (
        <Pictures id={id} why={instead.why} again={() => setInstead(undefined)} none={none} />
      )}
      {instead?.hasNone !== true && <HandOver sandbox={sandbox} />}
    </>
  );
}
