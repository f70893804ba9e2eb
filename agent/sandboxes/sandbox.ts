/** A sandbox that runs on this node, made from its start request, and the answer to that request. */

import type { Started, StartRequest } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { ENVD_VERSION } from "../../shared/version.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { SandboxEgress } from "../egress/channel/messages.ts";
import type { OnTimeout } from "../store/executions.ts";

/** A running sandbox as the other parts of the agent see it. */
export interface Sandbox {
  readonly executionId: string;
  readonly sandboxId: string;
  /** The project that owns it; undefined: the start request named none. */
  readonly projectId: string | undefined;
  readonly container: LiveContainer;
  readonly egress: EgressPolicy;
  readonly startedAt: number;
  readonly warm: boolean;
  /** Which part of its origin was restored. */
  readonly restored: Started["restored"];
  /** Milliseconds that the parts of its start took; absent: an earlier agent process has started it. */
  readonly times?: Started["times"];
  readonly endAt: number;
  readonly onTimeout: OnTimeout;
  /** The orchestrator's row of it; undefined: the start request had none. */
  readonly record?: string | undefined;
}

export function identity(
  body: StartRequest,
): Pick<Sandbox, "sandboxId" | "projectId" | "egress" | "endAt" | "onTimeout" | "record"> {
  const { sandboxId, projectId, egress, endAt, onTimeout, onTimeoutMemory = true, record } = body;
  return {
    sandboxId,
    projectId,
    egress,
    endAt,
    onTimeout: { does: onTimeout, memory: onTimeoutMemory },
    record,
  };
}

/** The sandbox as the gate and the egress process know it. */
export function guestOf({ executionId, sandboxId, container, egress: policy }: Sandbox): SandboxEgress {
  return { address: container.slot.address, executionId, sandboxId, policy };
}

export function toStarted({ executionId, sandboxId, container, startedAt, warm, restored, times }: Sandbox): Started {
  const { address } = container.slot;
  const started = { executionId, sandboxId, address, envdVersion: ENVD_VERSION, startedAt, warm, restored };
  return { ...started, ...defined({ times }) };
}
