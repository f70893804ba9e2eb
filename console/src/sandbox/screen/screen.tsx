/** The tab with the screen of a sandbox. Its code comes when the tab is opened first. */

import { useEffect, useState } from "preact/hooks";
import { loadPart } from "../../parts/load-part.ts";
import { Failure } from "../../parts/parts.tsx";
import type { TabProps } from "../tab.ts";

type Part = typeof import("./shown-screen.tsx");

export function ScreenTab(props: TabProps) {
  const [part, setPart] = useState<Part | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    loadPart(() => import("./shown-screen.tsx"))
      .then(setPart)
      .catch(setError);
  }, []);
  if (error !== undefined) return <Failure of={error} />;
  if (part === undefined) return <p class="small">loading …</p>;
  return <part.ShownScreen key={props.sandbox.sandboxID} {...props} />;
}
