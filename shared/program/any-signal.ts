/** `AbortSignal.any` whose time limits always fire. */

/** Holds the sources of composites. Node holds them weakly: an unreferenced time limit is collected and never fires. */
const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/** Aborts with the first of the signals, as long as the result has a listener. */
export function anySignal(...signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals]);
  sources.set(any, signals);
  return any;
}
