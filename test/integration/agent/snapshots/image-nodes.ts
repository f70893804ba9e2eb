/** Nodes whose Docker has images of several layers, in memory, for tests of images in a blob store: their rows and files are real. */

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import type { ClaimedStore } from "../../../../agent/blobs/claimed-store.ts";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { createCodec } from "../../../../agent/blobs/content/codec.ts";
import type { Blobs } from "../../../../agent/blobs/host-blobs.ts";
import type { BlobStore } from "../../../../agent/blobs/stores/store.ts";
import { createTransfers, type Transfers } from "../../../../agent/blobs/transfers.ts";
import { createImageArrivals } from "../../../../agent/snapshots/beyond/image-arrivals.ts";
import { createImageTrees } from "../../../../agent/snapshots/beyond/image-trees.ts";
import { imageUploads } from "../../../../agent/snapshots/beyond/image-uploads.ts";
import { tarred, untar } from "../../../../agent/snapshots/beyond/tar.ts";
import { createUploads } from "../../../../agent/snapshots/beyond/uploads.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import type { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { fakeImage } from "../../../support/fakes/fake-builds.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
export const PROJECT = "project";
const KEY = "of the test, with 32 characters or more";

/** An image: the content of each layer, by its name. */
export type Layers = Readonly<Record<string, Buffer>>;

const settings = { envs: {}, user: "user", workdir: "/home/user" };

/** Docker as an agent uses it for images: archives of directories with a file for each layer, and one with the image's name. */
async function testDocker() {
  const place = await mkdtemp(join(tmpdir(), "svc-images-"));
  onTestFinished(() => rm(place, { recursive: true }));
  const images = new Map<string, Layers>();
  const state = { saved: 0, used: new Set<string>(), beforeLoad: () => Promise.resolve() };
  return {
    images,
    state,
    image: (name: string) => Promise.resolve(images.has(name) ? { ...fakeImage(name), names: [] } : undefined),
    buildImages: () => Promise.resolve([...images.keys()]),
    untag(name: string) {
      if (!state.used.has(name)) images.delete(name);
      return Promise.resolve(!state.used.has(name));
    },
    async save(name: string, signal: AbortSignal): Promise<Readable> {
      const layers = images.get(name);
      if (layers === undefined) throw new Error(`no such image: ${name}`);
      state.saved++;
      const directory = await mkdtemp(join(place, "save-"));
      for (const [layer, content] of Object.entries(layers)) {
        await mkdir(join(directory, layer));
        await writeFile(join(directory, layer, "layer.tar"), content);
      }
      await writeFile(join(directory, "name"), name);
      return new Promise((resolve, reject) => {
        tarred(
          directory,
          (archive) => new Promise((done) => archive.once("close", done) && resolve(archive)),
          signal,
        ).catch(reject);
      });
    },
    async load(archive: Readable, signal: AbortSignal) {
      await state.beforeLoad();
      const directory = await mkdtemp(join(place, "load-"));
      await untar(archive, directory, signal);
      const layers: Record<string, Buffer> = {};
      for (const entry of await readdir(directory, { withFileTypes: true }))
        if (entry.isDirectory()) layers[entry.name] = await readFile(join(directory, entry.name, "layer.tar"));
      images.set(await readFile(join(directory, "name"), "utf8"), layers);
    },
  };
}

export type ImageNode = Awaited<ReturnType<typeof imageNode>>;

/** A node with this store. Its clock stands still until the test moves it. */
export async function imageNode(share: BlobStore, clock = { now: 1_000_000_000_000 }) {
  const own = await mkdtemp(join(tmpdir(), "svc-node-"));
  onTestFinished(() => rm(own, { recursive: true }));
  const docker = await testDocker();
  const stores = openStores(":memory:", testSeal);
  onTestFinished(() => stores.close());
  const state = { away: undefined as BlobError | undefined, refusal: undefined as AppError | undefined };
  const now = () => clock.now;
  const blobs: Pick<Blobs, "codec" | "extents" | "work"> & { transfers: Transfers } = {
    codec: (domain: string) => createCodec({ keys: [KEY], domain }),
    extents: (_path: string, size: number) => Promise.resolve([{ at: 0, length: size }]),
    transfers: createTransfers(),
    work: join(own, "work"),
  };
  const store: Pick<ClaimedStore, "name" | "use"> = {
    name: share.name,
    use() {
      if (state.away !== undefined) throw state.away;
      return share;
    },
  };
  const disk = { storageRefusal: () => Promise.resolve(state.refusal) };
  return {
    own,
    clock,
    docker,
    stores,
    state,
    blobs,
    /** The next agent process begins: of the former one only rows and Docker are left. */
    restart() {
      blobs.transfers = createTransfers();
    },
    /** A build of a template that is ready. */
    built(layers: Layers, { projectId = PROJECT }: { readonly projectId?: string | null } = {}) {
      const id = randomUUID();
      const image = `svc/build:${id}`;
      stores.builds.begin(id, "template", 0, projectId ?? undefined);
      stores.builds.succeed(id, { image, settings, diskBytes: 1, envdVersion: "0" }, 0);
      docker.images.set(image, layers);
      return { id, image };
    },
    /**
     * What an agent process has of it: it forgets what is not in a row.
     * @param ends false: the test kills the process, whose calls never come back
     */
    uploads(ends = true) {
      const images = createImageTrees({ containers: docker, work: blobs.work });
      const made = createUploads({
        of: imageUploads({ stores, containers: docker, blobs, images, disk, now }),
        store,
        stored: stores.imageUploads,
        onChange: () => undefined,
        now,
        log,
        everyMs: 5,
      });
      if (ends) onTestFinished(() => made.stop());
      return made;
    },
    arrivals(ends = true) {
      const made = createImageArrivals({
        blobs,
        containers: docker,
        store,
        stores,
        disk,
        peer: () => {
          throw new BlobError("unreachable", "no test has another node as a source");
        },
        onChange: () => undefined,
        now,
        log,
        waitMs: 60_000,
      });
      if (ends) onTestFinished(() => made.stop());
      return made;
    },
  };
}
