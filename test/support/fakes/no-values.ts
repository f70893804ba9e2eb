/** An agent without an orchestrator: no placeholder has a value. */

import type { PlaceholderSource } from "../../../agent/egress-supervisor/process.ts";
import type { GateDeps } from "../../../agent/network/gate.ts";

export const noValues: GateDeps["values"] = { begin: () => undefined, end: () => undefined };
export const noPlaceholders: PlaceholderSource = {
  resolve: () => Promise.resolve({ answer: { problem: "no value" }, keepMs: 0 }),
  used: () => undefined,
};
