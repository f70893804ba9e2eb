/** What somebody has typed and not saved: before a screen is left that has it, the page asks. */

import { useEffect } from "preact/hooks";

/** One for each field that has such text. */
const unsaved = new Set<symbol>();

/** Browsers ask in their own words when the tab is closed or loaded again. */
const ask = (event: Event) => event.preventDefault();

export function useUnsaved(isUnsaved: boolean): void {
  useEffect(() => {
    if (!isUnsaved) return undefined;
    const own = Symbol("unsaved");
    unsaved.add(own);
    addEventListener("beforeunload", ask);
    return () => {
      unsaved.delete(own);
      if (unsaved.size === 0) removeEventListener("beforeunload", ask);
    };
  }, [isUnsaved]);
}

/** Whether what is on the screen may go. */
export function mayLeave(): boolean {
  return unsaved.size === 0 || confirm("What you have changed in the file is not saved, and is lost. Go on?");
}
