/** A large file that goes into a volume and comes back through the published SDK, as streams in both directions. */

import { createHash, randomBytes } from "node:crypto";
import type { Volume } from "e2b";
import { expect } from "vitest";

const MEGABYTE = 1024 ** 2;

/** Expects that all of it comes back unchanged, and removes it. Resolves to the seconds of each direction. */
export async function upAndDown(volume: Volume, megabytes: number): Promise<{ up: number; down: number }> {
  const chunk = randomBytes(MEGABYTE);
  const sent = createHash("sha256");
  let left = megabytes;
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (left === 0) return controller.close();
        // No two chunks are alike, so that one in the wrong place is noticed.
        const next = new Uint8Array(chunk);
        new DataView(next.buffer).setUint32(0, left--);
        sent.update(next);
        controller.enqueue(next);
      },
    },
    { highWaterMark: 1 },
  );
  const begun = performance.now();
  expect((await volume.writeFile("/large", source)).size).toBe(megabytes * MEGABYTE);
  const uploaded = performance.now();
  const received = createHash("sha256");
  const stream = await volume.readFile("/large", { format: "stream" });
  for await (const part of stream as unknown as AsyncIterable<Uint8Array>) received.update(part);
  const ended = performance.now();
  expect(received.digest("hex")).toBe(sent.digest("hex"));
  await volume.remove("/large");
  return { up: (uploaded - begun) / 1000, down: (ended - uploaded) / 1000 };
}
