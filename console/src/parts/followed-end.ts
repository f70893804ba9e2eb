/** A list of lines that shows its end while it grows. */

import { useEffect, useRef, useState } from "preact/hooks";
import { endFollower } from "./end-follower.ts";

/** @param lines others than before: the list has grown */
export function useFollowedEnd(lines: unknown) {
  const ref = useRef<HTMLDivElement>(null);
  const [follower] = useState(endFollower);
  useEffect(() => {
    if (ref.current !== null) follower.grown(ref.current);
  }, [lines, follower]);
  const onScroll = () => void (ref.current !== null && follower.scrolled(ref.current));
  return { ref, onScroll };
}
