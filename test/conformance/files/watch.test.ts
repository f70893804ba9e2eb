/** Watches on directories: which events come and in which order, and the polling calls that the other SDK uses. */

import { FileNotFoundError, type FilesystemEvent, FilesystemEventType, InvalidArgumentError, type Sandbox } from "e2b";
import { describe, expect, onTestFinished, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { targetOf, unary } from "../../support/sandbox/sandbox-host.ts";
import { refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const sandbox = sharedSandbox();

describe("a streamed watch", () => {
  test("a new file by upload is create, chmod, write and nothing else", async () => {
    const heard = await watch("w-upload");
    await sandbox().files.write("w-upload/new.txt", "content");
    await sandbox().files.write("w-upload/last", "end");
    await expect.poll(() => names(heard)).toContain("write last");
    expect(names(heard).filter((line) => line.endsWith("new.txt"))).toEqual([
      "create new.txt",
      "chmod new.txt",
      "write new.txt",
    ]);
  });

  test("overwriting a file is reported as a write", async () => {
    await sandbox().files.write("w-over/file", "1");
    const heard = await watch("w-over");
    await sandbox().files.write("w-over/file", "2");
    await expect.poll(() => names(heard)).toContain("write file");
    expect(names(heard)).not.toContain("create file");
  });

  test("renames, removals and changes of mode by programs are reported", async () => {
    await sandbox().files.write("w-change/file", "1");
    const heard = await watch("w-change");
    await sandbox().commands.run("cd w-change && chmod 600 file && mv file moved && rm moved");
    await expect.poll(() => names(heard)).toContain("remove moved");
    expect(names(heard)).toEqual(["chmod file", "rename file", "create moved", "remove moved"]);
  });

  test("without recursion, events below the directory are not reported", async () => {
    await sandbox().files.makeDir("w-flat/below");
    const heard = await watch("w-flat");
    await sandbox().files.write("w-flat/below/file", "x");
    await sandbox().files.write("w-flat/mark", "x");
    await expect.poll(() => names(heard)).toContain("write mark");
    expect(names(heard).filter((line) => line.includes("below/"))).toEqual([]);
  });

  test("a recursive watch reports the relative path, in old and in new directories", async () => {
    await sandbox().files.makeDir("w-deep/old");
    const heard = await watch("w-deep", { recursive: true });
    await sandbox().files.write("w-deep/old/file", "x");
    await sandbox().files.write("w-deep/new/inner/file", "x");
    await expect.poll(() => names(heard)).toContain("write old/file");
    await expect.poll(() => names(heard)).toContain("create new");
    await expect.poll(() => names(heard)).toContain("write new/inner/file");
  });

  test("many new directories with files at once: none is missed", async () => {
    const heard = await watch("w-race", { recursive: true });
    await sandbox().commands.run("cd w-race && for i in $(seq 1 50); do mkdir -p d$i/e && echo x > d$i/e/f; done");
    await expect
      .poll(() => new Set(heard.map((event) => event.name).filter((name) => name.endsWith("/e/f"))).size)
      .toBe(50);
  });

  test("entries come along when asked for, while they exist", async () => {
    const heard = await watch("w-entry", { includeEntry: true });
    await sandbox().files.write("w-entry/file", "12345");
    await expect.poll(() => names(heard)).toContain("write file");
    const write = heard.findLast((event) => event.type === FilesystemEventType.WRITE);
    expect(write?.entry).toMatchObject({
      name: "file",
      path: "/home/user/w-entry/file",
      type: "file",
      size: 5,
      owner: "user",
    });
    await sandbox().files.remove("w-entry/file");
    await expect.poll(() => names(heard)).toContain("remove file");
    expect(heard.findLast((event) => event.type === FilesystemEventType.REMOVE)?.entry).toBeUndefined();
  });

  test("a stopped watch is silent, and others go on", async () => {
    await sandbox().files.makeDir("w-stop");
    const first: FilesystemEvent[] = [];
    const handle = await sandbox().files.watchDir("w-stop", (event) => void first.push(event));
    const second = await watch("w-stop");
    await handle.stop();
    await sandbox().files.write("w-stop/file", "x");
    await expect.poll(() => names(second)).toContain("write file");
    expect(first).toEqual([]);
  });

  test("names with blanks and accents are whole", async () => {
    const heard = await watch("w-näme", { recursive: true });
    await sandbox().files.write("w-näme/d ü/f 漢.txt", "x");
    await expect.poll(() => names(heard)).toContain("write d ü/f 漢.txt");
  });

  test("a watch ends at its time-out and reports that", async () => {
    await sandbox().files.makeDir("w-time");
    const watched = async (timeoutMs: number) => {
      const started = Date.now();
      const ended = await new Promise<Error | undefined>((resolve, reject) => {
        sandbox()
          .files.watchDir("w-time", () => undefined, { timeoutMs, onExit: resolve })
          .catch(reject);
      });
      return { name: ended?.name, early: Date.now() - started < timeoutMs - 200 };
    };
    // A busy machine may need longer than a second for the begin alone.
    expect(await watched(1_000).catch(() => watched(30_000))).toEqual({ name: "TimeoutError", early: false });
  });

  test("missing directories and files are refused", async () => {
    expect(await refusal(sandbox().files.watchDir("no/such", () => undefined))).toBeInstanceOf(FileNotFoundError);
    await sandbox().files.write("w-file", "x");
    expect(await refusal(sandbox().files.watchDir("w-file", () => undefined))).toBeInstanceOf(InvalidArgumentError);
  });
});

describe("a polled watch", () => {
  test("is created, returns each event once, and is removed", async () => {
    await sandbox().files.makeDir("w-poll");
    const target = await targetOf(platform, sandbox().sandboxId);
    const call = (method: string, message: unknown) =>
      unary(platform, target, `filesystem.Filesystem/${method}`, {
        message,
        headers: { "connect-timeout-ms": "60000" },
      });
    const { watcherId } = (await call("CreateWatcher", { path: "w-poll", recursive: true })).json as {
      watcherId: string;
    };
    expect(watcherId).toMatch(/.+/);
    await sandbox().files.write("w-poll/file", "x");
    const heard: string[] = [];
    await expect
      .poll(async () => {
        const { events } = (await call("GetWatcherEvents", { watcherId })).json as {
          events?: { name: string; type: string }[];
        };
        heard.push(...(events ?? []).map((event) => `${event.type} ${event.name}`));
        return heard;
      })
      .toEqual(["EVENT_TYPE_CREATE file", "EVENT_TYPE_CHMOD file", "EVENT_TYPE_WRITE file"]);
    expect((await call("GetWatcherEvents", { watcherId })).json).toEqual({});
    expect((await call("RemoveWatcher", { watcherId })).text).toBe("{}");
    expect((await call("GetWatcherEvents", { watcherId })).json).toMatchObject({ code: "not_found" });
  });
});

type WatchOptions = NonNullable<Parameters<Sandbox["files"]["watchDir"]>[2]>;

async function watch(path: string, options: WatchOptions = {}): Promise<FilesystemEvent[]> {
  await sandbox().files.makeDir(path);
  const heard: FilesystemEvent[] = [];
  const handle = await sandbox().files.watchDir(path, (event) => void heard.push(event), options);
  onTestFinished(() => handle.stop());
  return heard;
}

function names(heard: readonly FilesystemEvent[]): readonly string[] {
  return heard.map((event) => `${event.type} ${event.name}`);
}
