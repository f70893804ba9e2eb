/** A process that can die: its later calls reach no other part, and it receives no answers. */

const never = () => new Promise<never>(() => undefined);

/** Wraps `object` and the objects in it: once the process is dead, their methods never answer. */
export function guarded<T extends object>(object: T, alive: { readonly is: boolean }): T {
  return new Proxy(object, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value === "function") {
        return (...given: unknown[]) => {
          if (!alive.is) return never();
          const result: unknown = Reflect.apply(value, target, given);
          if (!(result instanceof Promise)) return result;
          // An answer that arrives after the death does not reach the process either.
          return result.then(
            (answer: unknown) => (alive.is ? answer : never()),
            (reason: unknown) => (alive.is ? Promise.reject(reason as Error) : never()),
          );
        };
      }
      return typeof value === "object" && value !== null ? guarded(value, alive) : value;
    },
  });
}
