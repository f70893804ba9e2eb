/** What people do with sandboxes. */

import { perform } from "../base/client.ts";
import type { ActRequest } from "../base/performed.ts";

const at = (id: string, rest = "") => `/sandboxes/${encodeURIComponent(id)}${rest}`;

/** How long a sandbox lives when the console resumes it. */
const RESUMED_S = 300;

/** The requests, which are sent and also shown as code. */
export const requests = {
  pause: (id: string): ActRequest => ({ method: "POST", path: at(id, "/pause"), body: {} }),
  resume: (id: string): ActRequest => ({
    method: "POST",
    path: `/v2${at(id, "/connect")}`,
    body: { timeout: RESUMED_S },
  }),
  kill: (id: string): ActRequest => ({ method: "DELETE", path: at(id) }),
  setLife: (id: string, seconds: number): ActRequest => ({
    method: "POST",
    path: at(id, "/timeout"),
    body: { timeout: seconds },
  }),
  fork: (id: string): ActRequest => ({ method: "POST", path: at(id, "/fork"), body: { count: 1 } }),
  snapshot: (id: string, name: string): ActRequest => ({
    method: "POST",
    path: at(id, "/snapshots"),
    body: name === "" ? {} : { name },
  }),
  rewind: (id: string, snapshotID: string): ActRequest => ({
    method: "POST",
    path: at(id, "/rewind"),
    body: { snapshotID },
  }),
  replaceNetwork: (id: string, body: object): ActRequest => ({ method: "PUT", path: at(id, "/network"), body }),
};

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
