/** Which images of templates a node reports to have. */

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { createHeldImages, imageOfBuild } from "../../../../agent/snapshots/beyond/held-images.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { memoryBlobStore } from "../../../support/fakes/memory-blob-store.ts";
import { imageNode } from "./image-nodes.ts";

const log = createLog({ component: "test", level: "silent" });
const APP = { app: Buffer.from("a layer") };

test("a node reports the images that Docker has: its own with where they are beside it, and copies", async () => {
  const share = memoryBlobStore();
  const node = await imageNode(share);
  const [stored, lost, old] = [node.built(APP), node.built(APP), node.built(APP, { projectId: null })];
  const ref = `${"a".repeat(64)}.1`;
  node.stores.imageUploads.add(stored.id, { ref, bytes: 1 });
  const copy = randomUUID();
  node.stores.copies.add(`svc/build:${copy}`, 0);
  const uploads = { images: node.uploads(), snapshots: { of: () => undefined } };
  const held = createHeldImages({ containers: node.docker, stores: node.stores, uploads, log });
  onTestFinished(() => held.stop());
  // For whoever reads one: it may be one that Docker has lost.
  expect([stored.id, copy, randomUUID()].map((id) => imageOfBuild(id, node.stores))).toEqual([
    stored.image,
    `svc/build:${copy}`,
    undefined,
  ]);
  const ids = () => held.list().map(({ buildId }) => buildId);
  expect(ids().toSorted()).toEqual([stored.id, lost.id, old.id, copy].toSorted());
  node.docker.images.delete(lost.image);
  await held.look();
  expect(ids().toSorted()).toEqual([stored.id, old.id].toSorted());
  expect(held.list().find(({ buildId }) => buildId === stored.id)).toMatchObject({ stored: { ref } });
  expect(held.list().find(({ buildId }) => buildId === old.id)).toEqual({ buildId: old.id, ownerless: true });
});
