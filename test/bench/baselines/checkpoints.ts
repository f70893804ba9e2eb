/**
 * The baselines of a resume: restores by runc alone and by Docker's own checkpoints, of a container that holds as much
 * memory.
 */

import { access, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../support/platform/programs.ts";
import { until } from "../../support/runner/until.ts";
import { timed } from "../bench.ts";
import { IMAGE } from "./docker.ts";
import type { ExperimentalEngine } from "./experimental-engine.ts";
import { plainCriu } from "./plain-criu.ts";

const CRIU_SETTINGS = "/opt/svc/criu/runc.conf";
const HELD_LIMIT_MS = 60_000;

/** A program that holds `size` MB on its heap, none of it zero, and never holds more than that. */
export const holder = (size: number) =>
  [
    `import os, time; block = os.urandom(1 << 20); heap = bytearray(${size} << 20)`,
    `[heap.__setitem__(slice(i << 20, i + 1 << 20), block) for i in range(${size})]`,
    `open("/tmp/held", "w").close(); time.sleep(86400)`,
  ].join("; ");

export async function dockerRestore({ docker }: ExperimentalEngine, size: number): Promise<number> {
  const name = `held-${size}`;
  const options = ["--network=none", "--security-opt=seccomp=unconfined"];
  await docker("run", "-d", "--name", name, ...options, IMAGE, "python3", "-c", holder(size));
  try {
    const held = () => succeeds(docker("exec", name, "test", "-e", "/tmp/held"));
    await until(held, { what: `${size} MB held by a plain container`, timeoutMs: HELD_LIMIT_MS });
    await docker("checkpoint", "create", name, "one");
    return await timed(() => docker("start", "--checkpoint", "one", name));
  } finally {
    await docker("rm", "-f", name);
  }
}

export interface RawRestore {
  /** Returns the milliseconds of a `runc restore` that loads all pages at once. */
  take(size: number): Promise<number>;
  remove(): Promise<void>;
}

/** Makes containers of runc's own from a copy of the image, with the CRIU options that sandboxes have. */
export async function rawRestores(): Promise<RawRestore> {
  const home = await mkdtemp(join(tmpdir(), "svc-bench-runc-"));
  const remove = () => rm(home, { recursive: true, force: true });
  const PATH = await plainCriu(home);
  const runc = (...args: readonly string[]) =>
    // CRIU cannot dump pipes to this process.
    run("bash", ["-c", 'exec runc "$@" </dev/null >/dev/null 2>&1', "runc", "--root", `${home}/state`, ...args], {
      PATH,
    });
  try {
    await mkdir(`${home}/bundle/rootfs`, { recursive: true });
    const unpack = `id=$(docker create ${IMAGE} true) && docker export "$id" | tar -x -C "$1"; docker rm "$id"`;
    await run("bash", ["-c", unpack, "unpack", `${home}/bundle/rootfs`]);
    await run("runc", ["spec", "--bundle", `${home}/bundle`], { PATH });
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    remove,
    async take(size) {
      const name = `svc-bench-${process.pid}-${size}`;
      const [images, work, held] = [`${home}/images`, `${home}/work`, `${home}/bundle/rootfs/tmp/held`];
      await configure(`${home}/bundle/config.json`, ["python3", "-c", holder(size)]);
      await rm(held, { force: true });
      await runc("run", "--detach", "--bundle", `${home}/bundle`, name);
      try {
        await until(() => succeeds(access(held)), { what: `${size} MB held under runc`, timeoutMs: HELD_LIMIT_MS });
        await runc("checkpoint", "--image-path", images, "--work-path", work, name);
        const from = ["--detach", "--bundle", `${home}/bundle`, "--image-path", images, "--work-path", work];
        return await timed(() => runc("restore", ...from, name));
      } finally {
        await runc("delete", "--force", name);
        await rm(images, { recursive: true, force: true });
      }
    },
  };
}

async function configure(path: string, args: readonly string[]): Promise<void> {
  const spec = JSON.parse(await readFile(path, "utf8")) as { process: object; root: object };
  const config = {
    ...spec,
    process: { ...spec.process, terminal: false, args },
    root: { ...spec.root, readonly: false },
    annotations: { "org.criu.config": CRIU_SETTINGS },
  };
  await writeFile(path, JSON.stringify(config));
}

function succeeds(done: Promise<unknown>): Promise<boolean> {
  return done.then(
    () => true,
    () => false,
  );
}
