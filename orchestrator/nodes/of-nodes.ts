/** Keeps a value of each node. The values of removed nodes go as soon as a further node gets one, so they never become many. */

export interface OfNodes<T> {
  get(nodeId: string): T | undefined;
  set(nodeId: string, value: T): unknown;
  values(): Iterable<T>;
}

/**
 * @param isKnown whether the node is on the platform
 * @param dropped gets each value that goes
 */
export function ofNodes<T>(
  isKnown: (nodeId: string) => boolean,
  dropped: (value: T) => void = () => undefined,
): OfNodes<T> {
  const values = new Map<string, T>();

  function dropRemoved(): void {
    for (const [id, value] of values) {
      if (isKnown(id)) continue;
      values.delete(id);
      dropped(value);
    }
  }

  return {
    get: (nodeId) => values.get(nodeId),
    set(nodeId, value) {
      if (!values.has(nodeId)) dropRemoved();
      values.set(nodeId, value);
    },
    values: () => values.values(),
  };
}
