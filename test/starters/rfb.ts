/**
 * A client of the server of a sandbox's screen (RFC 6143), which comes from outside as noVNC does: over a WebSocket through the edge. It
 * logs in, points, and draws nothing.
 */

import { createCipheriv } from "node:crypto";
import { expect, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import type { Platform } from "../support/platform/platform.ts";

/** The kinds of log-in: none, and a password. */
const NONE = 1;
const PASSWORD = 2;
const POINTER = 5;
const PICTURE_WANTED = 3;
/** What a server says of itself: width, height, form of a pixel, and the length of its name. */
const ABOUT_BYTES = 24;

interface Screen {
  /** `ended`: the server has cut the connection off. */
  readonly answer: "ended" | "refused" | "let in";
  /** Moves the pointer, and resolves when the server has read that. */
  readonly point: (x: number, y: number) => Promise<void>;
  readonly isOpen: () => boolean;
}

/**
 * Connects to noVNC's port of the sandbox, and logs in where it can.
 * @param password without one the client asks for a log-in that needs none
 */
export async function connectScreen(
  platform: Platform,
  sandboxId: string,
  { port, password }: { readonly port: number; readonly password?: string },
): Promise<Screen> {
  const headers = { "e2b-sandbox-id": sandboxId, "e2b-sandbox-port": String(port) };
  const socket = new WebSocket(`${platform.sandboxUrl.replace(/^http/, "ws")}/websockify`, ["binary"], { headers });
  onTestFinished(() => socket.terminate());
  let came = Buffer.alloc(0);
  socket.on("error", () => undefined).on("message", (data: Buffer) => void (came = Buffer.concat([came, data])));
  /** The next bytes; fewer, when the connection has ended. */
  const next = async (length: number) => {
    const isThere = () => came.length >= length || socket.readyState === WebSocket.CLOSED;
    await expect.poll(isThere, { timeout: 60_000 }).toBe(true);
    const part = came.subarray(0, length);
    came = came.subarray(length);
    return part;
  };

  const screen = (answer: Screen["answer"]): Screen => ({
    answer,
    async point(x, y) {
      // A picture that is asked for afterwards comes when the server has read both.
      came = Buffer.alloc(0);
      socket.send(Buffer.from([POINTER, 0, ...uint16(x), ...uint16(y)]));
      socket.send(Buffer.from([PICTURE_WANTED, 0, ...uint16(0), ...uint16(0), ...uint16(1), ...uint16(1)]));
      await next(1);
    },
    isOpen: () => socket.readyState === WebSocket.OPEN,
  });

  expect((await next(12)).toString()).toMatch(/^RFB 003\.00\d\n$/);
  socket.send(Buffer.from("RFB 003.008\n"));
  // One kind of log-in, with a password.
  expect([...(await next(2))]).toEqual([1, PASSWORD]);
  socket.send(Buffer.of(password === undefined ? NONE : PASSWORD));
  if (password !== undefined) socket.send(answerOf(await next(16), password));
  const result = await next(4);
  if (result.length < 4) return screen("ended");
  if (result.readUInt32BE() !== 0) return screen("refused");
  socket.send(Buffer.of(1));
  const about = await next(ABOUT_BYTES);
  await next(about.readUInt32BE(ABOUT_BYTES - 4));
  return screen("let in");
}

const uint16 = (number: number) => [number >> 8, number & 0xff] as const;

/** The challenge in DES, whose key is the password with the bits of each byte in reverse (RFC 6143, 7.2.2). */
function answerOf(challenge: Buffer, password: string): Buffer {
  const key = Buffer.alloc(8);
  key.write(password.slice(0, 8), "latin1");
  const reversed = key.map((byte) =>
    Number.parseInt(byte.toString(2).padStart(8, "0").split("").toReversed().join(""), 2),
  );
  // Node has DES no longer: three times with one key it is the same.
  const cipher = createCipheriv("des-ede3-ecb", Buffer.concat([reversed, reversed, reversed]), null);
  return Buffer.concat([cipher.setAutoPadding(false).update(challenge), cipher.final()]);
}
