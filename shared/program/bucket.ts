/**
 * A rate with a burst: `size` at once, refilled by `perSecond`.
 * @param now milliseconds; a clock that is set back takes nothing away
 */
export function bucket(size: number, perSecond: number, now: () => number = () => performance.now()) {
  const state = { left: size, at: now() };
  return {
    take(): boolean {
      const at = now();
      state.left = Math.min(size, state.left + (Math.max(0, at - state.at) / 1_000) * perSecond);
      state.at = at;
      if (state.left < 1) return false;
      state.left -= 1;
      return true;
    },
  };
}
