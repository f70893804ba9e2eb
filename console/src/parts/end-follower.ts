/** Whether a list of lines that grows is shown from its end on: until somebody scrolls up, and again from when they are back. Pure. */

/** What of an element is needed here. */
interface Scrolled {
  scrollTop: number;
  readonly scrollHeight: number;
  readonly clientHeight: number;
}

/** So near to the end counts as the end: browsers round. */
const NEAR_PX = 40;

export function endFollower() {
  const state = { follows: true, top: 0 };
  return {
    scrolled({ scrollTop, scrollHeight, clientHeight }: Scrolled): void {
      const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX;
      // Only somebody who scrolls up leaves the end: lines that have come meanwhile move it away, too.
      if (isAtEnd || scrollTop < state.top) state.follows = isAtEnd;
      state.top = scrollTop;
    },
    grown(list: Scrolled): void {
      if (!state.follows) return;
      list.scrollTop = list.scrollHeight;
      state.top = list.scrollTop;
    },
  };
}
