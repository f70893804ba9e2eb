import { appendFileSync, chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { EventType, type FilesystemEvent } from "../../../../shared/envd-rpc/gen/filesystem_pb.js";
import { as, sharedEnvd } from "../running-envd.ts";

const { envd, clients } = sharedEnvd();
let count = 0;
let dir: string;
beforeEach(() => {
  count += 1;
  dir = join(envd.home, `w${count}`);
  mkdirSync(dir);
});

const user = as("user");
const words = ({ name, type }: Pick<FilesystemEvent, "name" | "type">) => `${EventType[type]} ${name}`;
const at = (name: string) => join(dir, name);
const upload = (path: string, body: string) =>
  fetch(`${envd.url}/files?path=${encodeURIComponent(path)}&username=user`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body,
  });

interface Watching {
  readonly events: FilesystemEvent[];
  readonly told: () => string[];
  readonly failure: Promise<unknown>;
  stop(): Promise<void>;
}

/** Starts and follows a watch; the watch is armed when this resolves. */
async function watch(options: { path?: string; recursive?: boolean; includeEntry?: boolean } = {}): Promise<Watching> {
  const leaving = new AbortController();
  const events: FilesystemEvent[] = [];
  const watched = clients.filesystem.watchDir({ path: dir, ...options }, { ...user, signal: leaving.signal });
  const stream = watched[Symbol.asyncIterator]();
  const first = await stream.next();
  expect(first.value?.event.case).toBe("start");
  const failure = (async (): Promise<unknown> => {
    try {
      for (let next = await stream.next(); next.done !== true; next = await stream.next())
        if (next.value.event.case === "filesystem") events.push(next.value.event.value);
      return undefined;
    } catch (error) {
      return error;
    }
  })();
  return { events, told: () => events.map(words), failure, stop: async () => void (leaving.abort(), await failure) };
}

describe("a watched directory", () => {
  test("reports an upload as exactly create, chmod, write", async () => {
    const watching = await watch();
    await upload(at("new.txt"), "content");
    await expect.poll(watching.told).toContain("WRITE new.txt");
    await upload(at("last"), "");
    await expect.poll(watching.told).toContain("CHMOD last");
    expect(watching.told()).toEqual(["CREATE new.txt", "CHMOD new.txt", "WRITE new.txt", "CREATE last", "CHMOD last"]);
    await watching.stop();
  });

  test("reports changes of its entries in order", async () => {
    const watching = await watch();
    writeFileSync(at("f"), "1");
    await expect.poll(watching.told).toContain("WRITE f");
    appendFileSync(at("f"), "2");
    await expect.poll(() => watching.told().filter((event) => event === "WRITE f").length).toBe(2);
    chmodSync(at("f"), 0o600);
    renameSync(at("f"), at("g"));
    rmSync(at("g"));
    await expect.poll(watching.told).toContain("REMOVE g");
    expect(watching.told()).toEqual(["CREATE f", "WRITE f", "WRITE f", "CHMOD f", "RENAME f", "CREATE g", "REMOVE g"]);
    await watching.stop();
  });

  test("does not report events below it, unless asked", async () => {
    mkdirSync(at("sub"));
    const watching = await watch();
    writeFileSync(at("sub/inner"), "x");
    writeFileSync(at("outer"), "x");
    await expect.poll(watching.told).toContain("WRITE outer");
    expect(watching.told().some((event) => event.includes("inner"))).toBe(false);
    await watching.stop();
  });

  test("includes the entry while it exists", async () => {
    const watching = await watch({ includeEntry: true });
    await upload(at("f"), "abc");
    await expect.poll(watching.told).toContain("WRITE f");
    rmSync(at("f"));
    await expect.poll(watching.told).toContain("REMOVE f");
    const write = watching.events.find(({ type }) => type === EventType.WRITE);
    expect(write?.entry).toMatchObject({ path: at("f"), size: 3n, owner: "user" });
    expect(watching.events.at(-1)?.entry).toBeUndefined();
    await watching.stop();
  });

  test("can be reached through a link", async () => {
    symlinkSync(dir, `${dir}-link`);
    const watching = await watch({ path: `${dir}-link` });
    writeFileSync(at("f"), "");
    await expect.poll(watching.told).toEqual(["CREATE f"]);
    await watching.stop();
  });

  test("reports the removal of its own directory", async () => {
    const watching = await watch();
    rmSync(dir, { recursive: true });
    await expect.poll(watching.told).toEqual(["REMOVE ."]);
    await watching.stop();
  });
});

describe("a watch of everything below", () => {
  test("includes the directories that exist already", async () => {
    mkdirSync(at("a/b/c"), { recursive: true });
    const watching = await watch({ recursive: true });
    writeFileSync(at("a/b/c/f"), "x");
    await expect.poll(watching.told).toEqual(["CREATE a/b/c/f", "WRITE a/b/c/f"]);
    await watching.stop();
  });

  test("watches new directories, and misses no entry that was made there at once", async () => {
    const watching = await watch({ recursive: true });
    mkdirSync(at("n/e/w"), { recursive: true });
    writeFileSync(at("n/e/w/f"), "x");
    await expect.poll(watching.told).toContain("WRITE n/e/w/f");
    expect(watching.told().slice(0, 4)).toEqual(["CREATE n", "CREATE n/e", "CREATE n/e/w", "CREATE n/e/w/f"]);
    appendFileSync(at("n/e/w/f"), "y");
    rmSync(at("n"), { recursive: true });
    await expect.poll(watching.told).toContain("REMOVE n");
    for (const name of ["n", "n/e", "n/e/w", "n/e/w/f"]) {
      expect(watching.told().filter((event) => event === `CREATE ${name}`)).toHaveLength(1);
      expect(watching.told().filter((event) => event === `REMOVE ${name}`)).toHaveLength(1);
    }
    await watching.stop();
  });

  test("reports each of many files in many new directories once", async () => {
    const watching = await watch({ recursive: true });
    const names = Array.from({ length: 40 }, (_, i) => `d${i}/f${i}`);
    for (const name of names) {
      mkdirSync(at(name.split("/")[0] ?? ""));
      writeFileSync(at(name), "");
    }
    await expect.poll(() => watching.told().length).toBeGreaterThanOrEqual(80);
    expect(watching.told().toSorted()).toEqual(
      names.flatMap((name) => [`CREATE ${name}`, `CREATE ${name.split("/")[0]}`]).toSorted(),
    );
    await watching.stop();
  });

  test("follows a directory that is renamed, under its new name", async () => {
    mkdirSync(at("old/sub"), { recursive: true });
    const watching = await watch({ recursive: true });
    renameSync(at("old"), at("new"));
    await expect.poll(watching.told).toEqual(["RENAME old", "CREATE new"]);
    await expect
      .poll(() => {
        writeFileSync(at("new/sub/f"), "");
        return watching.told();
      })
      .toContain("CREATE new/sub/f");
    expect(watching.told().some((event) => event.includes("old/"))).toBe(false);
    await watching.stop();
  });

  test("does not follow links out of the tree", async () => {
    mkdirSync(`${dir}-outside`);
    symlinkSync(`${dir}-outside`, at("link"));
    const watching = await watch({ recursive: true });
    writeFileSync(`${dir}-outside/f`, "");
    writeFileSync(at("mine"), "");
    await expect.poll(watching.told).toEqual(["CREATE mine"]);
    await watching.stop();
  });
});

describe("several watches", () => {
  test("of one directory each report every event, and end independently", async () => {
    const [one, two] = [await watch(), await watch({ recursive: true })];
    writeFileSync(at("a"), "");
    await expect.poll(() => [one.told(), two.told()]).toEqual([["CREATE a"], ["CREATE a"]]);
    await one.stop();
    const third = await watch();
    writeFileSync(at("b"), "");
    await expect.poll(() => [two.told().at(-1), third.told().at(-1)]).toEqual(["CREATE b", "CREATE b"]);
    expect(one.told()).toEqual(["CREATE a"]);
    await Promise.all([two.stop(), third.stop()]);
  });

  test("opened and closed at random never lose an event of the one that stays", async () => {
    const staying = await watch();
    const churn = Array.from({ length: 30 }, async (_, i) => {
      const passing = await watch({ recursive: i % 2 === 0 });
      writeFileSync(at(`f${i}`), "");
      await passing.stop();
    });
    await Promise.all(churn);
    await expect.poll(() => new Set(staying.told().filter((event) => event.startsWith("CREATE"))).size).toBe(30);
    await staying.stop();
  });
});

/** What a watcher that is polled saw since the last time. */
const fetchAll = async (watcherId: string) => (await clients.filesystem.getWatcherEvents({ watcherId }, user)).events;

describe("polling", () => {
  const create = async (options: object = {}) =>
    (await clients.filesystem.createWatcher({ path: dir, ...options }, user)).watcherId;

  test("each event is reported once, until the watcher is removed", async () => {
    const watcherId = await create({ includeEntry: true });
    writeFileSync(at("f"), "abc");
    const told: FilesystemEvent[] = [];
    await expect
      .poll(async () => {
        told.push(...(await fetchAll(watcherId)));
        return told.map(words);
      })
      .toEqual(["CREATE f", "WRITE f"]);
    expect(told[1]?.entry?.size).toBe(3n);
    expect(await fetchAll(watcherId)).toEqual([]);
    await clients.filesystem.removeWatcher({ watcherId }, user);
    await expect(fetchAll(watcherId)).rejects.toMatchObject({ code: Code.NotFound });
    await expect(clients.filesystem.removeWatcher({ watcherId }, user)).rejects.toMatchObject({ code: Code.NotFound });
  });

  test("the number of watchers is limited", async () => {
    const ids: string[] = [];
    const fill = async () => {
      for (;;) ids.push(await create());
    };
    await expect(fill()).rejects.toMatchObject({ code: Code.ResourceExhausted });
    expect(ids.length).toBeGreaterThan(200);
    await Promise.all(ids.map((watcherId) => clients.filesystem.removeWatcher({ watcherId }, user)));
    await clients.filesystem.removeWatcher({ watcherId: await create() }, user);
  });
});

describe("around a memory dump", () => {
  const post = async (path: string) => (await fetch(`${envd.url}${path}`, { method: "POST" })).status;

  test("watches release inotify and take it again, and new watches wait", async () => {
    mkdirSync(at("sub"));
    const [stream, polled] = [
      await watch({ recursive: true }),
      (await clients.filesystem.createWatcher({ path: dir }, user)).watcherId,
    ];
    expect([await post("/watches/suspend"), await post("/watches/suspend")]).toEqual([204, 204]);
    const waiting = watch();
    writeFileSync(at("unseen"), "");
    expect([await post("/watches/resume"), await post("/watches/resume")]).toEqual([204, 204]);
    const late = await waiting;
    writeFileSync(at("sub/seen"), "");
    writeFileSync(at("seen"), "");
    await expect.poll(stream.told).toEqual(["CREATE sub/seen", "CREATE seen"]);
    await expect.poll(late.told).toEqual(["CREATE seen"]);
    const told: string[] = [];
    await expect
      .poll(async () => {
        told.push(...(await fetchAll(polled)).map(words));
        return told;
      })
      .toEqual(["CREATE seen"]);
    await Promise.all([stream.stop(), late.stop(), clients.filesystem.removeWatcher({ watcherId: polled }, user)]);
  });
});

test("a path that cannot be watched is refused with its own reason", async () => {
  const refused = async (path: string) => {
    const stream = clients.filesystem.watchDir({ path }, user)[Symbol.asyncIterator]();
    return stream.next().then(
      () => undefined,
      (error: unknown) => error,
    );
  };
  writeFileSync(at("file"), "");
  expect(await refused(at("missing"))).toMatchObject({ code: Code.NotFound });
  expect(await refused(at("file"))).toMatchObject({ code: Code.InvalidArgument });
  await expect(clients.filesystem.createWatcher({ path: at("missing") }, user)).rejects.toMatchObject({
    code: Code.NotFound,
  });
});

test("an idle watch is kept alive on the wire, and its deadline ends it", async () => {
  const headers = { ...user.headers, "keepalive-ping-interval": "1" };
  const kept = async () => {
    const stream = clients.filesystem.watchDir({ path: dir }, { headers, timeoutMs: 1_500 });
    const cases: (string | undefined)[] = [];
    const all = (async () => {
      for await (const { event } of stream) cases.push(event.case);
    })();
    await expect(all).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    return cases;
  };
  // On a machine that stands still the client may give up before it reads what was sent.
  await expect.poll(kept).toEqual(["start", "keepalive"]);
});
