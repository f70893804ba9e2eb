/** Turns a kernel's iopub message into an event of the run. Pure. */

import { members } from "../../json/members.ts";
import type { Bundle, KernelEvent } from "../kernel.ts";
import { textPieces } from "./stream-text.ts";
import type { Message } from "./wire.ts";

/** A longer text becomes several events, so that a slow client holds up the kernel and fills no memory. */
const LONGEST_TEXT = 1024 * 1024;
/** Bytes of a stream message that its name is in, from the beginning or the end. */
const NAME_WITHIN = 64;

/** With its key: a program can print the word alone. */
const IS_STDERR = /"name": ?"stderr"/;

/** None for a message that clients do not get. @throws {SyntaxError} for one that cannot be read */
export function* eventsOf({ header, content }: Message): Generator<KernelEvent> {
  switch (header.msg_type) {
    case "execute_input":
      yield { type: "count", count: numberIn(read(content), "execution_count") };
      return;
    case "stream":
      yield* outputs(content, header.date);
      return;
    case "display_data":
      yield { type: "result", bundle: bundleOf(content), main: false };
      return;
    case "execute_result":
      yield { type: "result", bundle: bundleOf(content), main: true };
      return;
    case "error":
      yield errorOf(read(content));
  }
}

/** The error of an `execute_reply`, when the run failed without an error message; undefined after success. */
export function errorOfReply(content: Buffer): KernelEvent | undefined {
  const reply = read(content);
  if (reply["status"] === "aborted")
    return { type: "error", name: "ExecutionAborted", value: "Execution was aborted", traceback: "" };
  return reply["status"] === "error" ? errorOf(reply) : undefined;
}

/** Whether the kernel ends behind this `execute_reply`, because the run called `exit()`. */
export function asksExit(content: Buffer): boolean {
  const { payload } = read(content);
  return Array.isArray(payload) && payload.some((part: unknown) => isExit(part));
}

function isExit(part: unknown): boolean {
  if (typeof part !== "object" || part === null || !("source" in part) || part.source !== "ask_exit") return false;
  return !("keepkernel" in part && part.keepkernel === true);
}

export function isIdle({ header, content }: Message): boolean {
  return header.msg_type === "status" && read(content)["execution_state"] === "idle";
}

function bundleOf(content: Buffer): Bundle {
  return members(members(content.toString()).get("data") ?? "{}");
}

function* outputs(content: Buffer, date: string): Generator<KernelEvent> {
  // In the text the quotes would be escaped. The name is before the text or behind it.
  const isError = [content.subarray(0, NAME_WITHIN), content.subarray(-NAME_WITHIN)].some((part) =>
    IS_STDERR.test(part.toString("latin1")),
  );
  const stream = isError ? "stderr" : "stdout";
  const timestamp = Number.isNaN(Date.parse(date)) ? {} : { timestamp: date };
  for (const text of textPieces(content, LONGEST_TEXT)) yield { type: "output", stream, text, ...timestamp };
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

function read(content: Buffer): Record<string, unknown> {
  const value: unknown = JSON.parse(content.toString());
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
