/** What the plans of all proxies have in common: their clients are strangers, and servers see the endings of clients. */

import type { ForwardPlan } from "./forward-plan.ts";
import { sendWebSocket } from "./web-socket.ts";

export const AS_A_PROXY: Pick<ForwardPlan, "patience" | "passesResets" | "sendWebSocket"> = {
  patience: { stallMs: 600_000, restMs: 0 },
  passesResets: true,
  sendWebSocket,
};
