/** envd's ends of a child's pipes: opened through svc-exec, read with back-pressure, drained when the child has ended. */

import { closeSync, constants, openSync, readSync } from "node:fs";
import { Socket } from "node:net";
import { errnoOf } from "../system/errno.ts";
import type { Spawned } from "../system/system.ts";
import { type InputEnd, inputEnd } from "./input-end.ts";
import type { Stream } from "./subscription.ts";
import { WholeCharacters } from "./whole-characters.ts";

/** Frame sizes of the public protocol. */
const LARGEST_CHUNK: Readonly<Record<Stream, number>> = { stdout: 32 * 1024, stderr: 32 * 1024, pty: 16 * 1024 };

/** A pipe holds 64 KiB; a writer that never stops must not keep a drain going. */
const LARGEST_DRAIN_BYTES = 1024 * 1024;

export interface OutputEnd {
  readonly stream: Stream;
  /** Resolves when every writer has closed the pipe, or `drain` was called. */
  readonly ended: Promise<void>;
  pause(): void;
  resume(): void;
  /** Delivers the pipe's present content and closes it, even if other programs could still write. */
  drain(): void;
}

export interface PipeEnds {
  readonly outputs: readonly OutputEnd[];
  readonly input: InputEnd | undefined;
}

/** Bytes of one stream, in order, in frames of legal size. */
export type OnBytes = (stream: Stream, bytes: Uint8Array) => void;

/** @throws ErrnoException when envd has no file descriptors left; nothing stays open then */
export function openEnds(spawned: Spawned, terminal: boolean, onBytes: OnBytes): PipeEnds {
  const opened: number[] = [];
  const open = (path: string, flags: number) => {
    // A new description of the same pipe: non-blocking here, blocking for the child.
    const fd = openSync(path, flags | constants.O_NONBLOCK);
    opened.push(fd);
    return fd;
  };
  try {
    const stdout = open(spawned.stdout, constants.O_RDONLY);
    const stderr = spawned.stderr === undefined ? undefined : open(spawned.stderr, constants.O_RDONLY);
    const stdin = spawned.stdin === undefined ? undefined : openInput(spawned.stdin, open);
    const outputs = [readEnd(stdout, terminal ? "pty" : "stdout", onBytes)];
    if (stderr !== undefined) outputs.push(readEnd(stderr, "stderr", onBytes));
    return { outputs, input: stdin === undefined ? undefined : inputEnd(stdin) };
  } catch (error) {
    for (const fd of opened) closeSync(fd);
    throw error;
  } finally {
    spawned.release();
  }
}

// ENXIO: the child has ended and no program can read the input.
function openInput(path: string, open: (path: string, flags: number) => number): number | undefined {
  try {
    return open(path, constants.O_WRONLY);
  } catch (error) {
    if (errnoOf(error) === "ENXIO") return undefined;
    throw error;
  }
}

function readEnd(fd: number, stream: Stream, onBytes: OnBytes): OutputEnd {
  const socket = new Socket({ fd, readable: true, writable: false });
  const characters = new WholeCharacters(LARGEST_CHUNK[stream], (frame) => onBytes(stream, frame));
  const deliver = (bytes: Buffer) => {
    characters.push(bytes);
    // Readers of terminals take bytes, and what is typed must be seen at once.
    if (stream === "pty") characters.flush();
  };
  socket.on("data", deliver);
  socket.on("error", () => socket.destroy());
  const ended = new Promise<void>((resolve) => {
    const finish = () => {
      characters.flush();
      resolve();
    };
    socket.once("end", finish);
    socket.once("close", finish);
  });
  const drain = () => {
    if (socket.destroyed || socket.readableEnded) return;
    // `read` also passes the bytes that it returns to the listener.
    while (socket.read() !== null);
    drainNow(fd, deliver);
    socket.destroy();
  };
  const pause = () => {
    socket.pause();
    characters.pause();
  };
  const resume = () => {
    socket.resume();
    characters.resume();
  };
  return { stream, ended, pause, resume, drain };
}

// What libuv has not read yet is still in the pipe, in order.
function drainNow(fd: number, deliver: (bytes: Buffer) => void): void {
  for (let total = 0; total < LARGEST_DRAIN_BYTES; ) {
    const bytes = Buffer.allocUnsafe(64 * 1024);
    let size: number;
    try {
      size = readSync(fd, bytes);
    } catch {
      return;
    }
    if (size === 0) return;
    deliver(bytes.subarray(0, size));
    total += size;
  }
}
