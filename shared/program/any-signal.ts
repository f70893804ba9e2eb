/** `AbortSignal.any` whose time limits always fire. */

/** Node's composite holds its sources weakly: a time limit without another reference is collected and never fires. */
const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/** Aborts with the first of the signals, as long as the result has a listener. */
export function anySignal(...signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals]);
  sources.set(any, signals);
  return any;
}
