/** What people do with sandboxes. */

import { perform } from "../base/client.ts";
import { requests } from "./requests.ts";

export const pauseSandbox = (id: string) => perform(requests.pause(id));
export const resumeSandbox = (id: string) => perform(requests.resume(id));
export const killSandbox = (id: string) => perform(requests.kill(id));

/** Does one thing with many, a few at a time, and tells of every one that failed. */
export async function withEach(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
  const left = [...ids];
  const failures: string[] = [];
  const worker = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      try {
        await work(id);
      } catch (error) {
        failures.push(`${id}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  if (failures.length > 0)
    throw new Error(`${failures.length} of ${ids.length} failed. ${failures.slice(0, 5).join(" · ")}`);
}
