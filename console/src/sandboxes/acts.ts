/** What people do with sandboxes. */

import { perform } from "../base/client.ts";
import { Failed } from "../base/failed.ts";
import { requests } from "./requests.ts";

export const pauseSandbox = (id: string) => perform(requests.pause(id));
export const resumeSandbox = (id: string) => perform(requests.resume(id));
export const killSandbox = (id: string) => perform(requests.kill(id));

/** Does one thing with many, a few at a time, and tells of every one that failed, with the id of its request. */
export async function withEach(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
  const left = [...ids];
  /** Those that failed, by what was said of them. */
  const failures = new Map<string, string[]>();
  const worker = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      try {
        await work(id);
      } catch (error) {
        const said = error instanceof Error ? error.message.replaceAll(id, "…") : String(error);
        const request =
          error instanceof Failed && error.requestId !== undefined ? ` (request_id ${error.requestId})` : "";
        failures.set(said, [...(failures.get(said) ?? []), id + request]);
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  const failed = [...failures.values()].flat().length;
  if (failed === 0) return;
  const told = [...failures].map(([said, which]) => `${said}: ${which.join(", ")}.`);
  throw new Error(`${failed} of ${ids.length} failed. ${told.join(" ")}`);
}
