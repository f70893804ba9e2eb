/** Whether a container's memory is whole, by its page server: nothing with missing pages is ever dumped. */

import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import type { PageServer } from "../../../../agent/snapshots/criu/criu.ts";
import type { SnapshotFiles } from "../../../../agent/snapshots/store/files.ts";
import type { Manifest } from "../../../../agent/snapshots/store/manifest.ts";
import { createMemoryImages } from "../../../../agent/snapshots/store/memory-images.ts";
import { createLog } from "../../../../shared/program/log.ts";

const ORIGINS = { architecture: "x64", cpuFlags: "" };

function world() {
  const servers: { stopped: boolean; end: (whole: boolean) => void }[] = [];
  const serve = (): Promise<PageServer> => {
    const server = { stopped: false, end: (_whole: boolean): void => undefined };
    const done = new Promise<boolean>((resolve) => {
      server.end = resolve;
    });
    servers.push(server);
    return Promise.resolve({
      done,
      stop() {
        server.stopped = true;
        server.end(false);
      },
    });
  };
  const images = createMemoryImages({
    files: {
      manifest: () => Promise.resolve({ memoryBytes: 1, origins: ORIGINS } as unknown as Manifest),
      untouched: () => Promise.resolve(true),
      verify: () => Promise.resolve(),
      images: (id: string) => `/images/${id}`,
    } as unknown as SnapshotFiles,
    criu: { servePages: serve, findPageServer: serve },
    origins: () => ORIGINS as never,
    lazyBytes: () => 0,
    work: (id) => `/page-server/${id}`,
    log: createLog({ component: "test", level: "silent" }),
  });
  const restoring = async (containerId: string) => {
    const open = await images.open({ id: "s1" }, new AbortController().signal);
    await open.serve(containerId);
    return open;
  };
  return { images, servers, restoring };
}

const outcome = (work: Promise<void>) =>
  work.then(
    () => "whole",
    (error: unknown) => String(error),
  );

test("a dump waits for the last page of its container, and for no other's", async () => {
  const { images, servers, restoring } = world();
  await restoring("c1");
  await images.complete("c2");
  const seen: string[] = [];
  const dumping = images.complete("c1").then(() => seen.push("dump"));
  await Promise.resolve();
  expect(seen).toEqual([]);
  servers[0]?.end(true);
  await dumping;
  await images.complete("c1");
});

test("a page server that is killed before the last page ends the dump that waits for it with an error, and every later one", async () => {
  const { images, servers, restoring } = world();
  const open = await restoring("c1");
  let broken = 0;
  open.restored(() => void broken++);
  const dumping = outcome(images.complete("c1"));
  servers[0]?.end(false);
  const failed = /page server .* ended before the last page/;
  expect(await dumping).toMatch(failed);
  expect(await outcome(images.complete("c1"))).toMatch(failed);
  expect(broken).toBe(1);
});

test("the page server of a restore that failed is stopped, and nothing is remembered of its container", async () => {
  const { images, servers, restoring } = world();
  const open = await restoring("c1");
  open.abandon();
  expect(servers[0]?.stopped).toBe(true);
  expect(await outcome(images.complete("c1"))).toBe("whole");
});

test("a dump waits for a page server that an earlier agent process left running", async () => {
  const { images, servers } = world();
  await images.adopt(["c1"]);
  const dumping = outcome(images.complete("c1"));
  servers[0]?.end(false);
  expect(await dumping).toMatch(/ended before the last page/);
});

test("a restore whose images have been checked listens to its signal no more", async () => {
  const { images } = world();
  const { signal } = new AbortController();
  const { verified } = await images.open({ id: "s1" }, signal);
  await verified;
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
