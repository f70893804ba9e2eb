/** `AbortSignal.any` whose time limits always come. */

/** Node's composite holds its sources weakly: a time limit that nothing else refers to is collected and never comes. */
const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/** Aborts with the first of them, for as long as anything listens to it. */
export function anySignal(...signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals]);
  sources.set(any, signals);
  return any;
}
