/** Secrets at rest: a process that is killed at any statement leaves the old state or the new one, and keys can be changed meanwhile. */

import type { KyselyPlugin } from "kysely";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSecretKeys } from "../../../../orchestrator/base/keys/secrets/secret-keys.ts";
import { createSecretKeyHandlers } from "../../../../orchestrator/rotation/rewrap.ts";
import { createSecretHandlers } from "../../../../orchestrator/secrets/handlers.ts";
import { createVault } from "../../../../orchestrator/secrets/vault.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import type { Database } from "../../../../orchestrator/store/tables.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { type KeysInMemory, keysInMemory } from "../../../support/store/secret-keys.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const NOBODY = { signal: new AbortController().signal, requestId: "", origin: "", status: () => undefined };

/** The program on `db`; with `keys`, as a restart would find them. */
async function programOn(db: Database, keys: KeysInMemory, { batch = 2, now = (): number => 1_000 } = {}) {
  const store = createStore(db, now, testSeal);
  const vault = createVault(createSecretKeys({ sources: { file: keys }, log }));
  const project = (await store.projects.list())[0] ?? (await store.projects.create("team"));
  const context = { ...NOBODY, caller: project, header: () => undefined, requestHeader: () => undefined };
  const routes = createSecretHandlers({ store: store.secrets, vault, most: 100 });
  const operators = createSecretKeyHandlers({ store: store.secrets, vault, now, log, batch });
  return {
    store,
    vault,
    project,
    create: (name: string, value: string) =>
      Promise.resolve(routes.createSecret({ params: undefined, query: undefined, body: { name, value } }, context)),
    update: (name: string, value: string) =>
      Promise.resolve(routes.updateSecret({ params: { secretID: name }, query: undefined, body: { value } }, context)),
    remove: (name: string) =>
      Promise.resolve(routes.deleteSecret({ params: { secretID: name }, query: undefined, body: undefined }, context)),
    rewrap: (body: { wrappedBefore?: string } = {}) =>
      Promise.resolve(
        operators.rewrapSecrets({ params: undefined, query: undefined, body }, { ...context, caller: undefined }),
      ),
    values: async (): Promise<Record<string, string>> => {
      const found: Record<string, string> = {};
      for (const { name, version } of await store.secrets.list(project.id)) {
        const stored = await store.secrets.value(project.id, name);
        if (stored !== undefined) found[`${name} ${version}`] = await vault.open(stored);
      }
      return found;
    },
    keysInUse: async () => (await store.secrets.keysInUse()).map(({ keyId }) => keyId),
  };
}

async function openDatabase(): Promise<Database> {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  return opened.database;
}

/** The database as a process sees it that is killed before its statement number `last + 1`, once it has begun to work. */
function until(db: Database, last: number) {
  // Statements that are prepared while the process starts are not counted.
  const seen = { statements: Number.NEGATIVE_INFINITY };
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      if (++seen.statements > last) throw new Error("killed");
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  };
  return { database: db.withPlugin(plugin), begin: () => (seen.statements = 0) };
}

type Program = Awaited<ReturnType<typeof programOn>>;

/** Kills the work before its first statement, then before its second, and so on, until it ends. Returns how often it was killed. */
async function killedAtEachStep(steps: {
  readonly names?: string[];
  readonly before: (program: Program, keys: KeysInMemory) => Promise<unknown>;
  readonly work: (program: Program) => Promise<unknown>;
  readonly after: (program: Program, ended: boolean) => Promise<void>;
}): Promise<number> {
  const db = await openDatabase();
  for (let last = 0; ; last++) {
    await db.deleteFrom("secrets").execute();
    const keys = keysInMemory(...(steps.names ?? ["one"]));
    const restarted = await programOn(db, keys);
    await steps.before(restarted, keys);
    const killing = until(db, last);
    const dying = await programOn(killing.database, keys);
    killing.begin();
    const ended = await steps.work(dying).then(
      () => true,
      (reason: unknown) => {
        // Only the kill ends it; no other failure may hide behind it.
        expect(String(reason)).toMatch(/killed/);
        return false;
      },
    );
    await steps.after(restarted, ended);
    if (ended) return last;
  }
}

describe("a process that is killed at any statement", () => {
  test("of a create leaves no secret or a whole one", async () => {
    const kills = await killedAtEachStep({
      before: () => Promise.resolve(),
      work: ({ create }) => create("a", "value"),
      after: async ({ values }, ended) => expect(await values()).toEqual(ended ? { "a 1": "value" } : {}),
    });
    expect(kills).toBeGreaterThanOrEqual(3);
  });

  test("of a new version leaves the old value or the new one", async () => {
    const kills = await killedAtEachStep({
      before: ({ create }) => create("a", "old"),
      work: ({ update }) => update("a", "new"),
      after: async ({ values }, ended) => expect(await values()).toEqual(ended ? { "a 2": "new" } : { "a 1": "old" }),
    });
    expect(kills).toBeGreaterThanOrEqual(3);
  });

  test("of a deletion leaves the secret or nothing", async () => {
    const kills = await killedAtEachStep({
      before: ({ create }) => create("a", "old"),
      work: ({ remove }) => remove("a"),
      after: async ({ values }, ended) => expect(await values()).toEqual(ended ? {} : { "a 1": "old" }),
    });
    expect(kills).toBeGreaterThanOrEqual(2);
  });

  test("of a change of the key leaves every value readable, and a repetition finishes it", async () => {
    const all = { "a 1": "1", "b 1": "2", "c 1": "3", "d 1": "4", "e 1": "5" };
    let keys = keysInMemory();
    const kills = await killedAtEachStep({
      before: async ({ create }, made) => {
        keys = made;
        for (const [name, value] of Object.entries(all)) await create(name.slice(0, 1), value);
        keys.names.unshift("two");
      },
      work: ({ rewrap }) => rewrap(),
      after: async ({ values, rewrap, keysInUse }) => {
        expect(await values()).toEqual(all);
        expect(await rewrap()).toMatchObject({ done: true, stillNeeded: [] });
        // The old key may go.
        keys.names = ["two"];
        expect([await values(), await keysInUse()]).toEqual([all, ["file:two"]]);
      },
    });
    expect(kills).toBeGreaterThanOrEqual(9);
  });
});

describe("a change of the key", () => {
  test("is not done while a secret needs a key that cannot be used, and names that key", async () => {
    const keys = keysInMemory("one");
    const { create, rewrap } = await programOn(await openDatabase(), keys);
    for (const name of ["a", "b", "c"]) await create(name, name);
    keys.names = ["two"];
    const lost = { rewrapped: 0, failed: 3, stillNeeded: [{ keyID: "file:one", secrets: 3 }], done: false };
    expect(await rewrap()).toEqual({ currentKeyID: "file:two", ...lost });
    keys.names = ["two", "one"];
    expect(await rewrap()).toMatchObject({ rewrapped: 3, failed: 0, stillNeeded: [], done: true });
    expect(await rewrap()).toMatchObject({ rewrapped: 0, done: true });
  });

  test("waits for a write that read the old key before", async () => {
    const keys = keysInMemory("one");
    const { create, rewrap, keysInUse, values } = await programOn(await openDatabase(), keys);
    let go = () => undefined as void;
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const wrap = keys.wrap.bind(keys);
    keys.wrap = async (dataKey) => {
      const wrapped = await wrap(dataKey);
      await held;
      return wrapped;
    };
    const late = create("late", "value");
    keys.names.unshift("two");
    keys.wrap = wrap;
    const rewrapped = rewrap();
    go();
    await late;
    expect(await rewrapped).toMatchObject({ done: true });
    expect([await keysInUse(), await values()]).toEqual([["file:two"], { "late 1": "value" }]);
  });

  test("under one id wraps what was wrapped before a time, and continues where it was interrupted", async () => {
    const keys = keysInMemory("one");
    const db = await openDatabase();
    const { create } = await programOn(db, keys);
    for (const name of ["a", "b", "c"]) await create(name, name);
    const { rewrap, values } = await programOn(db, keys, { now: () => 5_000 });
    expect(await rewrap()).toMatchObject({ rewrapped: 0, done: true });
    const wrappedBefore = new Date(4_000).toISOString();
    expect(await rewrap({ wrappedBefore })).toMatchObject({ rewrapped: 3, done: true });
    expect(await rewrap({ wrappedBefore })).toMatchObject({ rewrapped: 0, done: true });
    expect(await values()).toEqual({ "a 1": "a", "b 1": "b", "c 1": "c" });
  });
});

test("a value opens as its own secret and version only, and each version has a key of its own", async () => {
  const { create, update, store, vault, project } = await programOn(await openDatabase(), keysInMemory("one"));
  await create("a", "first");
  const old = await store.secrets.value(project.id, "a");
  await update("a", "second");
  await create("b", "other");
  const [a, b] = [await store.secrets.value(project.id, "a"), await store.secrets.value(project.id, "b")];
  if (old === undefined || a === undefined || b === undefined) throw new Error("a secret is missing");
  expect(new Set([old.wrapped, a.wrapped, b.wrapped]).size).toBe(3);
  const damaged = new AppError("internal", "a stored secret is damaged");
  for (const [row, from] of [
    [a, b],
    [b, a],
    [a, old],
  ] as const) {
    await expect(vault.open({ ...row, value: from.value, keyId: from.keyId, wrapped: from.wrapped })).rejects.toThrow(
      damaged,
    );
  }
});

describe("uses", () => {
  async function used() {
    const db = await openDatabase();
    const program = await programOn(db, keysInMemory("one"), { now: () => 100 });
    const { store, project, create } = program;
    const { secretID } = await create("a", "1");
    await store.sandboxes.add(newSandbox({ id: "i1", projectId: project.id, executionId: "e1" }), { sandboxes: 10 });
    const use = {
      secretId: secretID,
      name: "a",
      version: 1,
      projectId: project.id,
      sandboxId: "i1",
      executionId: "e1",
      nodeId: "n1",
    };
    const firsts: number[] = [];
    const note = (over: object = {}) =>
      store.secretUses.note({ ...use, ...over }, (_session, { version }) => {
        firsts.push(version);
        return Promise.resolve();
      });
    const counted = async () => {
      const found = await store.secrets.find(project.id, "a");
      return [found?.useCount, found?.lastUsedAt];
    };
    return { db, program, store, note, firsts, counted };
  }

  test("the first use of each version by an execution is noted once", async () => {
    const { note, firsts } = await used();
    expect([await note(), await note(), await note({ version: 2 }), await note({ version: 1 })]).toEqual(
      Array.from({ length: 4 }, () => true),
    );
    expect(firsts).toEqual([1, 2]);
    expect([await note({ executionId: "other" }), await note({ secretId: "sec_gone" })]).toEqual([false, false]);
  });

  test("a note whose follow-up fails is not kept", async () => {
    const { store, note, firsts, program } = await used();
    const { id: projectId } = program.project;
    const found = await store.secrets.find(projectId, "a");
    const use = { secretId: found?.id ?? "", name: "a", version: 1, projectId, sandboxId: "i1", executionId: "e1" };
    const failing = () => Promise.reject(new Error("no audit"));
    await expect(store.secretUses.note({ ...use, nodeId: "n1" }, failing)).rejects.toThrow("no audit");
    await note();
    expect(firsts).toEqual([1]);
  });

  test("a report counts once, for the node that fetched the value only", async () => {
    const { store, note, counted } = await used();
    const uses = (count: number, lastAt: number) => [{ executionId: "e1", name: "a", count, lastAt }];
    await store.secretUses.report({ id: "r0", nodeId: "n1" }, uses(9, 50));
    expect(await counted()).toEqual([0, undefined]);
    await note();
    await store.secretUses.report({ id: "r1", nodeId: "n1" }, uses(3, 60));
    await store.secretUses.report({ id: "r1", nodeId: "n1" }, uses(3, 60));
    await store.secretUses.report({ id: "r2", nodeId: "n2" }, uses(5, 70));
    expect(await counted()).toEqual([3, 60]);
    // A clock that is ahead does not move the last use into the future.
    await store.secretUses.report({ id: "r3", nodeId: "n1" }, uses(1, 1_000_000));
    expect(await counted()).toEqual([4, 100]);
    await store.secretUses.report({ id: "r4", nodeId: "n1" }, uses(1, 20));
    expect(await counted()).toEqual([5, 100]);
  });

  test("counts go with the record of the sandbox, and the secret's own count stays", async () => {
    const { db, store, note, counted } = await used();
    await note();
    await store.secretUses.report({ id: "r1", nodeId: "n1" }, [{ executionId: "e1", name: "a", count: 2, lastAt: 1 }]);
    await db.deleteFrom("sandboxes").execute();
    expect([await db.selectFrom("secret_uses").selectAll().execute(), await counted()]).toEqual([[], [2, 1]]);
  });
});
