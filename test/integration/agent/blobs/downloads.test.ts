import { mkdtemp, open, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { draftOf } from "../../../../agent/blobs/download.ts";
import { treeSource } from "../../../../agent/blobs/from-files.ts";
import { storeSource } from "../../../../agent/blobs/sources.ts";
import { type Uploaded, uploadTree } from "../../../../agent/blobs/upload.ts";
import { type MemoryBlobStore, memoryBlobStore } from "../../../support/fakes/memory-blob-store.ts";
import { smallDisk } from "../../../support/store/small-disk.ts";
import { download, makeTree, readTree, threeBlobs, type Uploading, uploading } from "./trees.ts";

const { signal } = new AbortController();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-transfers-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const ownPlace = () => mkdtemp(join(folder, "own-"));

describe("a download", () => {
  async function uploaded(): Promise<{
    place: string;
    root: string;
    store: MemoryBlobStore;
    result: Uploaded;
    deps: Uploading;
  }> {
    const { place, root } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    const { deps } = uploading(store);
    return { place, root, store, deps, result: await uploadTree(deps, { root, kind: "tree" }, signal) };
  }

  test("that is cut at any call leaves nothing with its name, and the next one is whole", async () => {
    const { place, root, store, result, deps } = await uploaded();
    for (let cut = 1; cut <= 4; cut++) {
      let calls = 0;
      store.before = () => {
        if (++calls === cut) throw new BlobError("unreachable", "the store is away");
      };
      const to = join(place, `copy-${cut}`);
      await expect(download(deps, { ref: result.ref, to, sources: [storeSource(store)] })).rejects.toMatchObject({
        fault: "unreachable",
      });
      expect(await readdir(place)).not.toContain(`copy-${cut}`);
      expect(await readdir(place)).not.toContain(`.copy-${cut}.new`);
      store.before = () => undefined;
      // What a killed agent leaves.
      await makeTree(draftOf(to), []);
      await download(deps, { ref: result.ref, to, sources: [storeSource(store)] });
      expect((await readTree(to)).entries).toEqual((await readTree(root)).entries);
    }
  });

  test("takes from another node what the store lacks or has damaged, and says which blobs were damaged", async () => {
    const { place, root, store, result, deps } = await uploaded();
    const [[damaged] = [""], [missing] = [""]] = result.manifest.blobs;
    store.objects.set(`sha256/${damaged}`, Buffer.from("damaged"));
    store.objects.delete(`sha256/${missing}`);
    const peer = treeSource(deps.codec, { name: "the node b", ...result, root });
    const to = join(place, "copy");
    const { reader } = await download(deps, { ref: result.ref, to, sources: [storeSource(store), peer] });
    expect((await readTree(to)).entries).toEqual((await readTree(root)).entries);
    expect(reader.complaints().map(({ message }) => message)).toEqual([expect.stringContaining(damaged.slice(0, 64))]);
    expect(reader.served().get("the node b")?.blobs).toBe(2);
  });

  test("needs no store while a node has the tree", async () => {
    const { place, root } = await threeBlobs(await ownPlace());
    const { deps } = uploading(undefined, { sealed: true });
    const described = await uploadTree(deps, { root, kind: "tree" }, signal);
    const peer = treeSource(deps.codec, { name: "the node b", ...described, root });
    const to = join(place, "copy");
    await download(deps, { ref: described.ref, to, sources: [peer] });
    expect((await readTree(to)).entries).toEqual((await readTree(root)).entries);
    expect(await peer.get(`${"0".repeat(64)}.1`, signal)).toBeUndefined();
    const file = await open(join(root, "a"), "r+");
    await file.write("X", 0);
    await file.close();
    await expect(
      download(deps, { ref: described.ref, to: join(place, "other"), sources: [peer] }),
    ).rejects.toMatchObject({
      fault: "changed",
    });
  });

  test("does not write over what is there", async () => {
    const { root, store, result, deps } = await uploaded();
    const before = await readTree(root);
    await expect(download(deps, { ref: result.ref, to: root, sources: [storeSource(store)] })).rejects.toMatchObject({
      fault: "changed",
    });
    expect(await readTree(root)).toEqual(before);
  });

  test("onto a full disk says whose disk is full, and leaves it as it was", async () => {
    const { store, result, deps } = await uploaded();
    const disk = smallDisk(1);
    onTestFinished(() => disk.remove());
    disk.fill();
    const to = join(disk.place, "copy");
    await expect(download(deps, { ref: result.ref, to, sources: [storeSource(store)] })).rejects.toMatchObject({
      fault: "full",
      message: `this node's disk is full: it cannot hold ${to}`,
    });
    expect(await readdir(disk.place)).toEqual(["filler"]);
  });

  test("that its caller cuts leaves nothing", async () => {
    const { place, store, result, deps } = await uploaded();
    const controller = new AbortController();
    let calls = 0;
    store.before = () => {
      if (++calls === 3) controller.abort(new Error("given up"));
    };
    const to = join(place, "copy");
    const cut = download(deps, { ref: result.ref, to, sources: [storeSource(store)], given: controller.signal });
    await expect(cut).rejects.toThrow("given up");
    expect((await readdir(place)).toSorted()).toEqual(["tree"]);
  });
});
