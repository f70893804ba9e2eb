/** What people do with sandboxes. */

import { act } from "../base/client.ts";

const at = (id: string, rest = "") => `/sandboxes/${encodeURIComponent(id)}${rest}`;

/** How long a sandbox lives when the console resumes it. */
const RESUMED_S = 300;

export const pauseSandbox = (id: string) => act("POST", at(id, "/pause"), {});
export const resumeSandbox = (id: string) => act("POST", `/v2${at(id, "/connect")}`, { timeout: RESUMED_S });
export const killSandbox = (id: string) => act("DELETE", at(id));
export const setLife = (id: string, seconds: number) => act("POST", at(id, "/timeout"), { timeout: seconds });

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
