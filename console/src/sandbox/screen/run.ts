/** Runs the scripts of the screen in a sandbox. */

import { anyOf } from "../../base/stream.ts";
import { follow } from "../envd.ts";
import { NoScreen } from "./endings.ts";
import { type Message, type Outcome, outcomeOf } from "./outcome.ts";
import { MOST_PICTURE_BYTES, type Size, sizeOf } from "./picture.ts";
import { DISPLAY, END, handOver, NO_SCREEN, type Passwords, passwordsOf, TAKE_PICTURE } from "./scripts.ts";

const MOST_TEXT_BYTES = 4_096;
/** A hand-over gives its two programs ten seconds, and those before them ten to end. */
const LIMIT_MS = 60_000;

export interface Picture {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly size: Size;
}

/** @throws {NoScreen} @throws {Failed} */
export async function takePicture(id: string, left: AbortSignal): Promise<Picture> {
  const { output } = await run(id, TAKE_PICTURE, left, MOST_PICTURE_BYTES);
  return { bytes: output, size: sizeOf(output) };
}

/** @throws {NoScreen} @throws {Failed} */
export async function handScreenOver(id: string, left: AbortSignal): Promise<Passwords> {
  const { output } = await run(id, handOver(), left, MOST_TEXT_BYTES);
  return passwordsOf(new TextDecoder().decode(output));
}

/** The hand-over ends: x11vnc and noVNC stop, which disconnects everybody who watches or steers. @throws {Failed} */
export async function endHandOver(id: string, left: AbortSignal): Promise<void> {
  await run(id, END, left, MOST_TEXT_BYTES);
}

async function run(id: string, script: string, left: AbortSignal, mostBytes: number): Promise<Outcome> {
  const process = { cmd: "/bin/bash", args: ["-c", script], envs: { DISPLAY, LANG: "C.UTF-8" } };
  const signal = anyOf([left, AbortSignal.timeout(LIMIT_MS)]);
  const outcome = await outcomeOf(follow<Message>(id, "process.Process/Start", { process }, signal), mostBytes);
  if (outcome.exitCode === 0) return outcome;
  if (outcome.exitCode === NO_SCREEN) throw new NoScreen();
  throw new Error(outcome.errors.trim() || `the program in the sandbox ended with status ${outcome.exitCode}`);
}
