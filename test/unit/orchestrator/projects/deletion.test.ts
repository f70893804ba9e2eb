/** The deletion of a project, whose process dies after each of its steps in turn: the next process finishes it. */

import { expect, onTestFinished, test } from "vitest";
import { createSeeds } from "../../../../orchestrator/base/keys/seeds.ts";
import { createEnding } from "../../../../orchestrator/lifecycle/ending/kill.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { createRoutingTable } from "../../../../orchestrator/nodes/routing-table.ts";
import { deleteRound, type ProjectPart } from "../../../../orchestrator/projects/deletion.ts";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { createTemplateRemoval } from "../../../../orchestrator/templates/removal.ts";
import { newExecutionId, newSandboxId, newUuid } from "../../../../shared/ids.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { lifecycleCore } from "../../../support/fakes/lifecycle-core.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const KEY = { name: "key", scopes: ["read"], expiresAt: undefined, createdBy: "admin" } as const;

const log = createLog({ component: "test", level: "silent" });
const NOW = 5;

const never = () => new Promise<never>(() => undefined);

/** A process that dies after some calls of methods of the object, or of the objects in it. `step`: whether it lives on. */
function counted<T extends object>(object: T, step: (when: "before" | "after") => boolean): T {
  return new Proxy(object, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value === "object" && value !== null) return counted(value, step);
      if (typeof value !== "function") return value;
      return async (...given: unknown[]) => {
        if (!step("before")) return never();
        const answer: unknown = await Reflect.apply(value, target, given);
        return step("after") ? answer : never();
      };
    },
  });
}

/** Two projects, the first with something of each kind, in a database of their own or in a given one. */
async function world(given?: OpenedDatabase) {
  const opened = given ?? (await openTestDatabase());
  if (given === undefined) onTestFinished(() => opened.close());
  const store = createStore(opened.database, () => NOW, testSeal);
  const facts = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0, envdVersion: "0" };
  const base = await store.templates.seed("base", { image: "base", ...facts });
  const project = await store.projects.create("team");
  const other = await store.projects.create("other");
  await store.keys.create(project.id, KEY);
  await store.keys.create(other.id, KEY);

  async function sandbox(projectId: string, state: "running" | "paused" | "gone", templateId = base.templateId) {
    const id = newSandboxId();
    const sealedEnvs = testSeal.close("{}", id);
    const executionId = newExecutionId();
    await store.sandboxes.add(
      newSandbox({
        ...facts,
        id,
        projectId,
        executionId,
        templateId,
        buildId: base.id,
        sealedEnvs,
        metadata: { a: "b" },
      }),
      { sandboxes: 100 },
    );
    await store.move({ id, to: "running", set: { address: "127.0.0.1" } }, { type: "created" });
    if (state === "paused") {
      await store.move({ id, to: "pausing" });
      await store.move({ id, to: "paused", set: { snapshot: { id: newUuid(), memory: true } } }, { type: "paused" });
    }
    if (state === "gone") {
      await store.move({ id, to: "killing", set: { end: { reason: "request" } } });
      await store.move({ id, to: "gone", set: { endedAt: NOW } }, { type: "killed" });
    }
    return id;
  }
  async function template(projectId: string, name: string) {
    const made = await store.builds.request({
      projectId,
      namespace: name,
      name,
      tags: ["default"],
      resources: facts,
      envdVersion: "0",
    });
    if (made === undefined) throw new Error("the name is a snapshot's");
    await store.templates.setPublic(made.template.id, true);
    return made.template.id;
  }
  for (const state of ["running", "paused", "gone"] as const) await sandbox(project.id, state);
  const shared = await template(project.id, project.slug);
  await store.snapshots.templateFor(project.id, { namespace: project.slug, alias: "snap" });
  const kept = await sandbox(other.id, "running");

  /** One life of the orchestrator. */
  function boot(mine: Store) {
    const nodes = {
      list: () => [],
      mayChange: () => true,
      agent: () => ({ stopExecution: () => undefined, deleteSnapshot: () => undefined }),
      freed: () => undefined,
    };
    const snapshots = { remove: () => Promise.resolve(), removeSoon: () => undefined, again: () => undefined };
    const routes = createRoutingTable({ seeds: createSeeds("seed", []), place: () => undefined });
    const core = lifecycleCore({ store: mine, nodes: nodes as unknown as Nodes, routes, snapshots, now: () => NOW });
    const ending = createEnding({ core, observe: () => undefined });
    const deps = {
      store: mine,
      ending,
      builds: { cancelAll: () => Promise.resolve({ cancelled: 0, failed: 0 }) },
      templates: createTemplateRemoval({
        store: mine,
        snapshots,
        archives: { removeTemplate: () => Promise.resolve() },
        pools: { gone: () => undefined },
        builds: { forget: () => undefined },
      }),
      identity: { forgetProject: () => undefined },
      parts: [] as ProjectPart[],
      log,
    };
    return {
      deps,
      /** What a request and the rounds after it do. */
      async delete() {
        await mine.projectDeletions.begin(project);
        for (const id of await mine.projectDeletions.underWay()) await deleteRound(id, deps);
      },
    };
  }
  return { store, project, other, kept, shared, sandbox, boot };
}

test("the next process finishes a deletion whose process died after any of its steps, and touches no other project", async () => {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  let lastStep = Number.POSITIVE_INFINITY;
  let deaths = 0;
  for (let death = 1; death <= lastStep; death++) {
    const w = await world(opened);
    let steps = 0;
    let die: () => void = () => undefined;
    const died = new Promise<void>((resolve) => {
      die = resolve;
    });
    const mine = counted(w.store, (when) => {
      if (when === "after" && ++steps >= death) die();
      return steps < death;
    });
    await Promise.race([
      w
        .boot(mine)
        .delete()
        .then(() => (lastStep = steps)),
      died,
    ]);
    if (lastStep === Number.POSITIVE_INFINITY) deaths++;
    // Its keys went with the first step.
    expect(await w.store.keys.list(w.project.id)).toEqual([]);
    const next = w.boot(w.store);
    await next.delete();
    await next.delete();
    const context = `died after step ${death}`;
    expect(await w.store.projects.find(w.project.id), context).toBeUndefined();
    expect(await w.store.projectDeletions.find(w.project.publicId), context).toMatchObject({ finishedAt: NOW });
    const left = await w.store.projectUse.remaining(w.project.id);
    expect(Object.values(left), context).toEqual([0, 0, 0, 0, 0]);
    const page = { offset: 0, limit: 100, ascending: true };
    expect(await w.store.events.list(w.project.id, page), context).toEqual([]);
    expect(await w.store.sandboxes.get(w.kept), context).toMatchObject({ state: "running" });
    expect(await w.store.keys.list(w.other.id), context).toHaveLength(1);
  }
  expect(deaths).toBeGreaterThan(10);
});

test("a template that another project's sandbox was started from stays, closed to new ones, until that sandbox ends", async () => {
  const w = await world();
  const user = await w.sandbox(w.other.id, "running", w.shared);
  const process = w.boot(w.store);
  await process.delete();
  expect(await w.store.projectUse.remaining(w.project.id)).toMatchObject({ sandboxes: 0, snapshots: 0, templates: 1 });
  expect(await w.store.templates.get(w.shared)).toMatchObject({ public: false });
  expect(await w.store.sandboxes.get(user)).toMatchObject({ state: "running" });
  await process.deps.ending.kill(user, "request");
  await process.delete();
  expect(await w.store.projects.find(w.project.id)).toBeUndefined();
});

test("what another folder keeps for projects is removed, and the project stays for as long as some of it is left", async () => {
  const w = await world();
  const process = w.boot(w.store);
  let left = 2;
  process.deps.parts.push({
    name: "volumes",
    count: () => Promise.resolve(left),
    remove: () => {
      left--;
      return left === 1 ? Promise.reject(new Error("not now")) : Promise.resolve();
    },
  });
  await process.delete();
  expect(await w.store.projects.find(w.project.id)).toMatchObject({ status: "deleting" });
  await process.delete();
  expect(await w.store.projects.find(w.project.id)).toBeUndefined();
});

test("once a project is deleted, another one can have its slug", async () => {
  const w = await world();
  await w.boot(w.store).delete();
  expect(await w.store.projects.create("team")).toMatchObject({ slug: "team", status: "active" });
});
