/** Stored bytes and quotas of projects under any operations in any order. */

import * as fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import type { StoredBytes } from "../../../../orchestrator/store/storage/stored-bytes.ts";
import { newUuid } from "../../../../shared/ids.ts";
import { tries } from "../../../support/store/databases.ts";
import { begin, openWorld, QUOTA } from "./storage-world.ts";

describe("the stored bytes of a project", () => {
  interface Model {
    state: "running" | "pausing" | "paused" | "starting" | "snapshotting" | "killing" | "gone";
    snapshot: StoredBytes | undefined;
    reserved: number;
    pending: string;
    fork: string | undefined;
  }
  type Does = "pause" | "pause disk" | "checkpoint" | "fork" | "end" | "fail" | "resume" | "reboot" | "drop" | "kill";
  interface Step {
    readonly does: Does;
    readonly which: number;
    readonly bytes: number;
    readonly disk: number;
  }
  const step: fc.Arbitrary<Step> = fc.record({
    does: fc.constantFrom<Does>(
      ...([
        "pause",
        "pause disk",
        "checkpoint",
        "fork",
        "end",
        "end",
        "end",
        "fail",
        "resume",
        "reboot",
        "drop",
        "kill",
      ] as const),
    ),
    which: fc.nat({ max: 3 }),
    bytes: fc.nat({ max: 60 }),
    disk: fc.nat({ max: 20 }),
  });

  test("are the sum of what its records name, and a snapshot begins exactly when it fits the quota", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), async (steps) => {
        const { opened, store, project, other, base, run } = await openWorld();
        const ids = ["i0", "i1", "i2", "i3"];
        const models = new Map<string, Model>();
        for (const id of ids) {
          await run(id);
          models.set(id, { state: "running", snapshot: undefined, reserved: 0, pending: "", fork: undefined });
        }
        const kept = new Map<string, number>();

        function expected(): number {
          let sum = [...kept.values()].reduce((bytes, each) => bytes + each, 0);
          for (const { state, snapshot, reserved } of models.values()) {
            if (state === "killing" || state === "gone") continue;
            const rests = state === "paused" || state === "starting";
            sum += reserved + (snapshot?.memoryBytes ?? 0) + (rests ? (snapshot?.diskBytes ?? 0) : 0);
          }
          return sum;
        }

        async function beginOne(id: string, model: Model, { does, bytes }: Step): Promise<void> {
          const fitting = model.state === "running" && expected() + bytes <= QUOTA;
          const pending = newUuid();
          if (does === "pause" || does === "pause disk") {
            const memory = does === "pause";
            const moved = await store.move({
              id,
              to: "pausing",
              when: { from: ["running"], ...(memory ? { room: { bytes, quotaBytes: QUOTA } } : {}) },
              set: { pendingSnapshot: { id: pending, memory, reservedBytes: memory ? bytes : undefined } },
            });
            expect(moved !== undefined).toBe(memory ? fitting : model.state === "running");
            if (moved !== undefined) Object.assign(model, { state: "pausing", reserved: memory ? bytes : 0, pending });
            return;
          }
          if (model.fork !== undefined) return;
          const fork = does === "fork";
          const own = fork ? base.templateId : (await store.snapshots.templateFor(project.id, undefined))?.id;
          const kind = fork ? "fork" : "snapshot";
          const begun = await begin(store, { id, snapshotId: pending, kind, templateId: own ?? "", bytes });
          expect(begun !== undefined).toBe(fitting);
          if (begun === undefined) return;
          Object.assign(model, { state: "snapshotting", reserved: bytes, pending, ...(fork ? { fork: pending } : {}) });
        }

        /** The node has answered: the snapshot is not larger than what it reserved. */
        async function end(id: string, model: Model, { disk, bytes }: Step): Promise<void> {
          const size = { memoryBytes: Math.min(bytes, model.reserved), diskBytes: disk };
          if (model.state === "pausing") {
            const snapshot = { id: model.pending, memory: true, size };
            await store.move({ id, to: "paused", set: { snapshot, pendingSnapshot: null } });
            Object.assign(model, { state: "paused", snapshot: size, reserved: 0 });
          } else if (model.state === "snapshotting") {
            await store.finishSnapshot(
              { id, to: "running", when: { from: ["snapshotting"] }, set: { pendingSnapshot: null } },
              { id: model.pending, image: undefined, memory: true, size },
              undefined,
            );
            kept.set(model.pending, size.memoryBytes + size.diskBytes);
            Object.assign(model, { state: "running", reserved: 0 });
          }
        }

        async function fail(id: string, model: Model): Promise<void> {
          const back = { id, to: "running" as const, set: { pendingSnapshot: null } };
          if (model.state === "pausing") await store.move(back);
          else if (model.state === "snapshotting") await store.giveUpSnapshot(model.pending, back);
          else return;
          if (model.fork === model.pending) model.fork = undefined;
          Object.assign(model, { state: "running", reserved: 0 });
        }

        async function resume(id: string, model: Model, memory: boolean): Promise<void> {
          if (model.state === "paused") {
            await store.move({ id, to: "starting" });
            model.state = "starting";
          } else if (model.state === "starting") {
            await store.move({ id, to: "running", ...(memory ? { set: { snapshot: null } } : {}) });
            Object.assign(model, { state: "running", ...(memory ? { snapshot: undefined } : {}) });
          }
        }

        async function drop(model: Model): Promise<void> {
          const { fork } = model;
          if (fork === undefined || model.state === "snapshotting") return;
          await store.giveUpSnapshot(fork);
          kept.delete(fork);
          model.fork = undefined;
        }

        async function kill(id: string, model: Model): Promise<void> {
          // Only a sandbox at rest: the fork of a killed source is dropped by its own call.
          if (model.fork !== undefined || model.state === "snapshotting") return;
          await store.move({ id, to: model.state === "killing" ? "gone" : "killing" });
          model.state = model.state === "killing" || model.state === "gone" ? "gone" : "killing";
        }

        async function take(each: Step): Promise<void> {
          const id = ids[each.which] ?? "";
          const model = models.get(id);
          if (model === undefined) return;
          switch (each.does) {
            case "pause":
            case "pause disk":
            case "checkpoint":
            case "fork":
              return beginOne(id, model, each);
            case "end":
              return end(id, model, each);
            case "fail":
              return fail(id, model);
            case "resume":
            case "reboot":
              return resume(id, model, each.does === "resume");
            case "drop":
              return drop(model);
            case "kill":
              return kill(id, model);
          }
        }

        try {
          for (const each of steps) {
            await take(each);
            expect(await store.storage.projectBytes(project.id)).toBe(expected());
          }
          expect(await store.storage.projectBytes(other.id)).toBe(0);
        } finally {
          await opened.close();
        }
      }),
      { numRuns: tries(60) },
    );
  }, 240_000);

  test("fill the quota exactly, and no further, in a burst of pauses", async () => {
    const { opened, store, project, run } = await openWorld();
    onTestFinished(() => opened.close());
    const ids = Array.from({ length: 8 }, (_, index) => `i${index}`);
    for (const id of ids) await run(id);
    const room = { bytes: 25, quotaBytes: QUOTA };
    const moved = await Promise.all(
      ids.map((id) =>
        store.move({
          id,
          to: "pausing",
          when: { room },
          set: { pendingSnapshot: { id: newUuid(), memory: true, reservedBytes: room.bytes } },
        }),
      ),
    );
    expect(moved.filter((record) => record !== undefined)).toHaveLength(4);
    expect(await store.storage.projectBytes(project.id)).toBe(100);
  });
});
