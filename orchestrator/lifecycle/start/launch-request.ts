/** What the start of a new sandbox works with: the request, and the parts. Types only. */

import type { StartRequest } from "../../../shared/agent-api/routes.ts";
import type { ErrorCode } from "../../../shared/http/errors.ts";
import type { Timing } from "../../../shared/program/tracing/timing.ts";
import type { PlacementPolicy } from "../../nodes/placement/candidate.ts";
import type { StartLimits } from "../../store/projects/limits.ts";
import type { NewSandbox } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import type { Ending } from "../ending/kill.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { Images } from "./images.ts";

/** The sandbox to start, without the fields that the launch decides. */
export interface LaunchRequest {
  readonly sandbox: Omit<NewSandbox, "executionId" | "nodeId" | "startedAt" | "endAt" | "deadlineAt">;
  /** The start request without the end, which is set when a node is asked. */
  readonly start: Omit<StartRequest, "endAt">;
  /** What the project may start. */
  readonly limit: StartLimits;
  /** The only region whose nodes may run it. */
  readonly region?: string | undefined;
  /** Labels that the node must have; absent: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** What the node must have, whatever it promises: the size that the caller named. */
  readonly least?: { readonly cpuCount: number; readonly memoryMB: number };
  /** The only node that has the snapshot or the volumes to start from. */
  readonly nodeId?: string;
  /** The node that built the image. */
  readonly imageNodeId?: string;
  /** The image is known to be in the blob store. */
  readonly imageInStore?: boolean;
  /** When its request began, unix milliseconds: several starts of one request wait within one limit. Absent: now. */
  readonly since?: number;
  /** Aborted: nobody waits for it any more. A start that has not begun then is given up. */
  readonly signal?: AbortSignal;
  /** Absent: nobody asks how long its parts take. */
  readonly timing?: Timing;
}

export interface LaunchDeps {
  readonly core: Core;
  readonly placement: PlacementPolicy;
  readonly ending: Ending;
  readonly elsewhere: Elsewhere;
  readonly images: Images;
  /** Counts the outcome for the metrics. */
  observe(outcome: { readonly warm: boolean; readonly seconds: number } | { readonly failed: ErrorCode }): void;
}
