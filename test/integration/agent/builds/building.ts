/** Builds of templates by an agent's own builder, on a machine in memory. */

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pack } from "tar-stream";
import { afterEach, beforeEach, expect } from "vitest";
import { type BuildParts, startBuilds } from "../../../../agent/builds/start-builds.ts";
import { createGate } from "../../../../agent/network/gate.ts";
import { createSlots } from "../../../../agent/network/slots.ts";
import { recover } from "../../../../agent/recovery/apply.ts";
import { boot } from "../../../../agent/sandboxes/boot.ts";
import { createDisposal } from "../../../../agent/sandboxes/disposal.ts";
import { openStores, type Stores } from "../../../../agent/store/stores.ts";
import type { BuildBody, BuildState, BuildStep } from "../../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import { resources } from "../../../support/fakes/agent-parts.ts";
import { type FakeEngine, fakeEngine } from "../../../support/fakes/fake-engine.ts";
import { able } from "../../../support/fakes/fake-machine.ts";
import { noPlaceholders, noValues } from "../../../support/fakes/no-values.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const NODE = "node-1";

export interface World {
  /** The error that refuses to store a template's memory now. */
  refuse: AppError | undefined;
  readonly engine: FakeEngine;
  readonly stores: Stores;
  readonly builds: ReturnType<typeof startBuilds>["builds"];
  readonly cache: BuildParts["cache"];
  readonly deletedSnapshots: string[];
  readonly cleared: Promise<void>;
}

export interface Builders {
  /** Starts the builder of an agent that takes over everything on this machine. */
  readonly world: (engine?: FakeEngine, buildLocalImages?: string) => Promise<World>;
  /** Lets the last builder's agent vanish: none of its parts is stopped. */
  readonly abandon: () => void;
}

/** Gives each test a directory, and ends the test's builders after it. */
export function buildersForEach(): Builders {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "svc-builds-"));
  });
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    await rm(directory, { recursive: true, force: true });
  });

  async function world(engine = fakeEngine(), buildLocalImages = "local/*"): Promise<World> {
    engine.fail(() => undefined);
    const stores = openStores(join(directory, "agent.db"), testSeal);
    const machine = engine.machine();
    const egress = machine.egress.start({ sandboxes: [], placeholders: noPlaceholders, onDecisions: () => undefined });
    const gate = createGate({ firewall: machine.network.firewall, egress, values: noValues, guests: [], log });
    const now = Date.now;
    const found = await recover({ machine, stores, now, log });
    const slots = createSlots({ ...machine.network, log, ahead: 0, restMs: 1 });
    slots.adopt([], found.leftoverSlots, found.cleared);
    const disposal = createDisposal({ docker: machine.docker, gate, stores, slots, log });
    const bootDeps = { ...machine, stores, slots, now, log };
    const teardown = new Teardown(log);
    const deletedSnapshots: string[] = [];
    const archive = pack();
    archive.entry({ name: "file" }, "content");
    archive.finalize();
    const bytes = await buffer(archive);
    const state = { refuse: undefined as AppError | undefined };
    const { builds, cache } = startBuilds(
      {
        machine,
        stores,
        gate,
        disposal,
        boot: (spec, signal) => boot(spec, bootDeps, signal),
        stored: {
          snapshots: {
            async delete(id) {
              deletedSnapshots.push(id);
              stores.snapshots.remove(id);
              await machine.memory.files.remove(id);
              await machine.docker.containers.removeImage(`svc/snapshot:${id}`);
            },
          },
          admission: {
            admit: async () => {
              if (state.refuse !== undefined) throw state.refuse;
              return () => undefined;
            },
            diskBytes: () => 0,
          },
        },
        capabilities: { now: () => able, memoryRefusal: () => undefined },
        refusal: () => undefined,
        templateFiles: () => Promise.resolve(Readable.from([bytes])),
        cleared: found.cleared,
        readyEveryMs: 5,
        defaultWaitS: 0.01,
        config: {
          nodeId: NODE,
          baseImage: "svc/base:latest",
          buildConcurrency: 2,
          buildCacheMb: 1_000,
          buildLocalImages,
          buildRegistries: "*",
        },
        now,
        log,
      },
      teardown,
    );
    stops.push(async () => {
      engine.fail(() => undefined);
      await builds.drain();
      await teardown.run();
      await disposal.settled();
      await slots.stop();
      stores.close();
    });
    return Object.assign(state, { engine, stores, builds, cache, deletedSnapshots, cleared: found.cleared });
  }

  return { world, abandon: () => void stops.pop() };
}

export const run = (command: string, number = 1): BuildStep => ({ type: "RUN", command, number, force: false });

export function body(more: Partial<BuildBody> = {}): BuildBody {
  return {
    templateId: "t",
    resources,
    from: { is: "image", image: "base" },
    steps: [
      run("one"),
      { type: "COPY", number: 2, force: false, source: "file", destination: "x", filesHash: "a".repeat(64) },
    ],
    force: false,
    startCmd: "serve",
    limitMs: 60_000,
    ...more,
  };
}

export async function ended({ builds }: World, buildId: string): Promise<BuildState> {
  await expect.poll(() => builds.state(buildId, 0, 1).status, { interval: 5 }).not.toBe("building");
  return builds.state(buildId, 0, 1_000);
}

export async function built(made: World, given: BuildBody): Promise<BuildState> {
  const buildId = randomUUID();
  made.builds.start(buildId, given);
  return ended(made, buildId);
}

/** Expects no container, nothing that belongs to one, and no image name that belongs to a single build. */
export async function expectNothingLeft({ engine, stores }: World): Promise<void> {
  await expect.poll(() => [...engine.containers.keys()], { interval: 5 }).toEqual([]);
  await expect.poll(() => [...engine.slots], { interval: 5 }).toEqual([]);
  await expect.poll(() => stores.containers.all()).toEqual([]);
  await expect.poll(() => [...engine.annotations.keys()]).toEqual([]);
  await expect
    .poll(() => [...engine.builds.named.keys()].filter((name) => /^svc\/(build|from):/.test(name)))
    .toEqual([]);
  expect(stores.snapshots.all()).toEqual([]);
}
