/** Promises that a test resolves itself, or that never resolve. */

export interface Gateway<T = void> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/** Work that waits for `promise` goes on when the test calls `resolve`. */
export function gateway<T = void>(): Gateway<T> {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Never resolves: stands for a node, a step or a program that does not answer. */
export function never(): Promise<void> {
  return new Promise<void>(() => undefined);
}
