/**
 * Bounds the texts that a node says of itself and of its load: they are stored, logged and shown to operators. What they are is
 * the agent's affair, and a report that is refused would cost its sandboxes: so each is cut. Pure.
 */

import type { Heartbeat } from "../../shared/agent-api/routes.ts";
import { REPORT_TEXT } from "../../shared/program/finding.ts";

/** Ids, addresses and marks have their bounds in the contract: what is cut would be another one. */
export function boundTexts(report: Heartbeat): Heartbeat {
  return { ...report, node: bound(report.node), load: bound(report.load) };
}

function bound<T>(value: T): T {
  return bounded(value) as T;
}

function bounded(value: unknown): unknown {
  if (typeof value === "string") return value.length > REPORT_TEXT ? value.slice(0, REPORT_TEXT) : value;
  if (Array.isArray(value)) return value.map(bounded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.slice(0, REPORT_TEXT), bounded(each)]));
}
