/** Turns a kernel's iopub message into an event of the run. Pure. */

import { members } from "../../json/members.ts";
import type { Bundle, KernelEvent } from "../kernel.ts";
import type { Message } from "./wire.ts";

/** A longer text becomes several events, so that a slow client holds up the kernel and fills no memory. */
const LONGEST_TEXT = 1024 * 1024;

/** None for a message that clients do not get, or that cannot be read. */
export function eventsOf({ header, content }: Message): KernelEvent[] {
  try {
    switch (header.msg_type) {
      case "execute_input":
        return [{ type: "count", count: numberIn(read(content), "execution_count") }];
      case "stream":
        return outputs(read(content), header.date);
      case "display_data":
        return [{ type: "result", bundle: bundleOf(content), main: false }];
      case "execute_result":
        return [{ type: "result", bundle: bundleOf(content), main: true }];
      case "error":
        return [errorOf(read(content))];
      default:
        return [];
    }
  } catch {
    return [];
  }
}

/** The error of an `execute_reply`, when the run failed without an error message; undefined after success. */
export function errorOfReply(content: string): KernelEvent | undefined {
  const reply = read(content);
  if (reply["status"] === "aborted")
    return { type: "error", name: "ExecutionAborted", value: "Execution was aborted", traceback: "" };
  return reply["status"] === "error" ? errorOf(reply) : undefined;
}

export function isIdle({ header, content }: Message): boolean {
  return header.msg_type === "status" && read(content)["execution_state"] === "idle";
}

function bundleOf(content: string): Bundle {
  return members(members(content).get("data") ?? "{}");
}

function outputs(content: Record<string, unknown>, date: string): KernelEvent[] {
  const stream = content["name"] === "stderr" ? "stderr" : "stdout";
  const text = textIn(content, "text");
  const timestamp = Number.isNaN(Date.parse(date)) ? {} : { timestamp: date };
  return pieces(text).map((piece) => ({ type: "output", stream, text: piece, ...timestamp }));
}

/** Cuts between characters: half of one is no character for the client. */
function pieces(text: string): string[] {
  const found: string[] = [];
  let from = 0;
  while (text.length - from > LONGEST_TEXT) {
    let end = from + LONGEST_TEXT;
    if (/[\ud800-\udbff]/.test(text[end - 1] ?? "")) end -= 1;
    found.push(text.slice(from, end));
    from = end;
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}

function errorOf(content: Record<string, unknown>): KernelEvent {
  const { traceback } = content;
  return {
    type: "error",
    name: textIn(content, "ename"),
    value: textIn(content, "evalue"),
    traceback: Array.isArray(traceback) ? traceback.join("") : "",
  };
}

function read(content: string): Record<string, unknown> {
  const value: unknown = JSON.parse(content);
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function textIn(content: Record<string, unknown>, name: string): string {
  const value = content[name];
  return typeof value === "string" ? value : "";
}

function numberIn(content: Record<string, unknown>, name: string): number {
  const value = content[name];
  return typeof value === "number" ? value : 0;
}
