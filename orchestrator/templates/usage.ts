/** Counts uses of templates in memory and writes them periodically, so that a start does not wait for the database. */

export interface Spawns {
  count(templateId: string): void;
  /** Writes the counts. A count that cannot be written stays for the next time, and the error is thrown. */
  flush(): Promise<void>;
}

export function createSpawns(write: (templateId: string, count: number) => Promise<void>): Spawns {
  const counts = new Map<string, number>();
  const add = (templateId: string, count: number) => counts.set(templateId, (counts.get(templateId) ?? 0) + count);
  return {
    count: (templateId) => void add(templateId, 1),
    async flush() {
      const taken = [...counts];
      counts.clear();
      for (const [templateId, count] of taken) {
        try {
          await write(templateId, count);
        } catch (error) {
          add(templateId, count);
          throw error;
        }
      }
    },
  };
}
