/**
 * Builds in the store under any operations in any order: only legal moves, one build under way for each tag, tags only on
 * ready builds.
 */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { type BuildStatus, mayBecome } from "../../../../shared/states/build-status.ts";
import { openTestDatabase, tries } from "../../../support/store/databases.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const TAGS = ["default", "v1"];

type Step =
  | { readonly does: "request"; readonly tags: readonly string[] }
  | { readonly does: "start" | "place" | "finish" | "fail" | "log"; readonly which: number }
  | { readonly does: "collect" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    does: fc.constant("request" as const),
    tags: fc.constantFrom<readonly string[]>(["default"], ["v1"], ["v1", "default"]),
  }),
  fc.record({
    does: fc.constantFrom("start" as const, "place" as const, "finish" as const, "fail" as const, "log" as const),
    which: fc.nat({ max: 5 }),
  }),
  fc.record({ does: fc.constant("collect" as const) }),
);

async function openWorld() {
  const opened = await openTestDatabase();
  let clock = 1;
  const store = createStore(opened.database, () => clock++, testSeal);
  const { id: projectId, slug: namespace } = await store.projects.create("team");
  return { opened, store, projectId, namespace };
}

test("builds, their statuses and tags stay consistent in random interleavings", { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { opened, store, projectId, namespace } = await openWorld();
      const ids: string[] = [];
      const gone = new Set<string>();
      const known = new Map<string, BuildStatus>();
      /** The build that got each tag last. */
      const tagged = new Map<string, string>();
      const { builds } = store;

      async function request(tags: readonly string[]): Promise<void> {
        const resources = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0 };
        const ask = { projectId, namespace, name: "app", tags, resources, envdVersion: "1" };
        ids.push((await builds.request(ask))?.build.id ?? "");
      }

      async function finish(id: string, before: BuildStatus | undefined): Promise<void> {
        const made = {
          image: "i",
          sealedSettings: "s",
          user: "u",
          workdir: "/",
          envdVersion: "1",
          snapshot: undefined,
        };
        const finished = await builds.finish(id, made);
        expect(finished !== undefined).toBe(before === "building");
        for (const tag of finished?.build.wantedTags ?? []) tagged.set(tag, id);
      }

      async function collect(): Promise<void> {
        const until = { ended: Number.MAX_SAFE_INTEGER, requested: 0 };
        const found = (await store.buildLeftovers.unused(until)).map(({ id }) => id);
        expect((await store.buildLeftovers.drop(until)).map(({ id }) => id)).toEqual(found);
        for (const id of found) {
          expect([...tagged.values()]).not.toContain(id);
          gone.add(id);
        }
      }

      async function take(step: Step): Promise<void> {
        if (step.does === "request") return request(step.tags);
        if (step.does === "collect") return collect();
        const id = ids[step.which] ?? "none";
        const before = gone.has(id) ? undefined : known.get(id);
        const begun = { parentBuildId: undefined, diskSizeMB: 0, files: [], withAccess: false, deadlineAt: 1 };
        switch (step.does) {
          case "start":
            expect((await builds.start({ ...begun, id, sealedBody: "b" })) !== undefined).toBe(before === "waiting");
            return;
          case "place":
            await builds.place(id, "n1", 1);
            return;
          case "log":
            expect(await builds.log(id, (await store.templates.build(id))?.logOffset ?? 0, [])).toBe(
              before === "building",
            );
            return;
          case "finish":
            return finish(id, before);
          case "fail": {
            const failed = await builds.fail(id, { message: "m", step: undefined }, "not logged");
            expect(failed !== undefined).toBe(before === "building");
          }
        }
      }

      async function look(): Promise<void> {
        const underWay = new Map<string, string>();
        for (const id of ids) {
          const build = await store.templates.build(id);
          expect(build === undefined).toBe(gone.has(id));
          if (build === undefined) continue;
          const before = known.get(id) ?? "waiting";
          expect(before === build.status || mayBecome(before, build.status)).toBe(true);
          known.set(id, build.status);
          if (build.status !== "building") continue;
          for (const tag of build.wantedTags) {
            expect(underWay.has(tag)).toBe(false);
            underWay.set(tag, id);
          }
        }
        for (const tag of TAGS) {
          const templateId = (await store.templates.build(ids.find((id) => !gone.has(id)) ?? ""))?.templateId ?? "";
          expect((await store.templates.tagged(templateId, tag))?.id).toBe(tagged.get(tag));
        }
      }

      try {
        for (const each of steps) {
          await take(each);
          await look();
        }
        // A node still has to remove its builds that are deleted or failed; builds that are ready or under way stay.
        const removals = (await store.buildLeftovers.removals(["n1"], 100)).map(({ buildId }) => buildId);
        for (const id of removals) expect(gone.has(id) || known.get(id) === "error").toBe(true);
      } finally {
        await opened.close();
      }
    }),
    { numRuns: tries(60) },
  );
});
