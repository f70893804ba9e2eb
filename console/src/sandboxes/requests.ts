/** Requests of what people do with sandboxes: they are sent, and shown as code. Pure. */

import type { ActRequest } from "../base/performed.ts";

const at = (id: string, rest = "") => `/sandboxes/${encodeURIComponent(id)}${rest}`;

/** How long a sandbox lives when the console resumes it. */
const RESUMED_S = 300;

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
