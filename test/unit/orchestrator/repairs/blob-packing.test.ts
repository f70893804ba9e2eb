/** When the nodes may write zstd: while every node of the platform reads it, those that are away too. */

import { expect, test } from "vitest";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { createBlobPacking } from "../../../../orchestrator/repairs/blobs/blob-packing.ts";
import { BLOB_ENCODINGS } from "../../../../shared/agent-api/blobs/encodings.ts";

const READS = { blobEncodings: BLOB_ENCODINGS };

test("one node that does not read zstd, whatever its state, keeps all of them from it, until it is removed", () => {
  const clock = { now: 0 };
  const details: Record<string, string>[] = [READS];
  const nodes = {
    list: () => details.map((detail) => ({ status: "unhealthy", facts: { capabilities: { detail } } })),
  } as unknown as Pick<Nodes, "list">;
  const every = createBlobPacking({ nodes, now: () => clock.now });
  const later = () => {
    clock.now += 5_000;
    return every();
  };
  expect(every()).toBe(true);
  details.push({});
  expect(later()).toBe(false);
  details[1] = READS;
  expect(later()).toBe(true);
  details.push({ blobEncodings: "deflate" });
  expect(later()).toBe(false);
  details.pop();
  expect(later()).toBe(true);
});

test("a thousand reports look at the nodes once in five seconds", () => {
  const looks = { count: 0 };
  const nodes = {
    list() {
      looks.count++;
      return [];
    },
  };
  const every = createBlobPacking({ nodes, now: () => 7 });
  for (let report = 0; report < 1_000; report++) every();
  expect(looks.count).toBe(1);
});
