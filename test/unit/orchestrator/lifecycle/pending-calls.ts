/** Counts the calls of a database that have no answer yet, so that a scheduler lets others go on only between answers. */

export interface PendingCalls {
  readonly count: number;
  /** Counts what the methods of `object`, and of the objects in it, return until it is settled. */
  of<T extends object>(object: T): T;
}

export function pendingCalls(): PendingCalls {
  let count = 0;
  function counted<T extends object>(object: T): T {
    return new Proxy(object, {
      get(target, name, receiver) {
        const value: unknown = Reflect.get(target, name, receiver);
        if (typeof value === "function") {
          return (...given: unknown[]) => {
            const result: unknown = Reflect.apply(value, target, given);
            if (!(result instanceof Promise)) return result;
            count++;
            return result.finally(() => count--);
          };
        }
        return typeof value === "object" && value !== null ? counted(value) : value;
      },
    });
  }
  return {
    get count() {
      return count;
    },
    of: counted,
  };
}
