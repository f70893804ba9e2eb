/** A rate with a burst: `size` at once, refilled by `perSecond`. */
export function bucket(size: number, perSecond: number, now = Date.now) {
  const state = { left: size, at: now() };
  return {
    take(): boolean {
      const at = now();
      state.left = Math.min(size, state.left + ((at - state.at) / 1_000) * perSecond);
      state.at = at;
      if (state.left < 1) return false;
      state.left -= 1;
      return true;
    },
  };
}
