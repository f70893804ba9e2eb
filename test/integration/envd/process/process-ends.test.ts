/** Processes of envd end by themselves, by a signal or by a deadline, and a client finds a running one again. */

import { existsSync, readFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Signal } from "../../../../shared/envd-rpc/gen/process_pb.js";
import { as, sharedEnvd } from "../running-envd.ts";
import { byPid, byTag, expectNoneLeft, runOn, sh } from "./commands.ts";
import { inBackground, toEnd } from "./following.ts";

const { clients } = sharedEnvd();

const run = runOn(() => clients);

describe("the end", () => {
  test("a killed process reports its signal, is gone, and cannot be killed twice", async () => {
    const sleep = await inBackground(clients.process.start({ process: sh("exec sleep 100") }, as("user")));
    await clients.process.sendSignal({ process: byPid(sleep.pid), signal: Signal.SIGKILL });
    expect((await sleep.done).end).toMatchObject({
      exitCode: -1,
      exited: false,
      status: "signal: killed",
      error: "signal: killed",
    });
    expect((await run(`kill -0 ${sleep.pid}`, { user: "root" })).end?.exitCode).toBe(1);
    await expect(
      clients.process.sendSignal({ process: byPid(sleep.pid), signal: Signal.SIGKILL }),
    ).rejects.toMatchObject({ code: Code.NotFound });
  });

  test("SIGKILL is answered only when the process is gone, also when the kernel needs time to free its memory", async () => {
    for (let round = 0; round < 5; round += 1) {
      const heavy = await inBackground(
        clients.process.start({ process: sh("exec dd if=/dev/zero of=/dev/null bs=100M") }, as("user")),
      );
      const resident = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${heavy.pid}/status`, "utf8"))?.[1]);
      await expect.poll(resident).toBeGreaterThan(60_000);
      await clients.process.sendSignal({ process: byPid(heavy.pid), signal: Signal.SIGKILL });
      expect(existsSync(`/proc/${heavy.pid}`)).toBe(false);
      await heavy.done;
    }
  });

  test("SIGTERM can be caught", async () => {
    const trap = await inBackground(
      clients.process.start(
        { process: sh("trap 'echo caught; exit 4' TERM; echo ready; while :; do sleep 0.05; done") },
        as("user"),
      ),
    );
    await expect.poll(trap.text).toContain("ready");
    await clients.process.sendSignal({ process: byPid(trap.pid), signal: Signal.SIGTERM });
    const seen = await trap.done;
    expect([seen.stdout.toString(), seen.end?.exitCode]).toEqual(["ready\ncaught\n", 4]);
  });

  test("only SIGTERM and SIGKILL can be sent", async () => {
    const sleep = await inBackground(clients.process.start({ process: sh("exec sleep 100") }, as("user")));
    await expect(clients.process.sendSignal({ process: byPid(sleep.pid) })).rejects.toMatchObject({
      code: Code.Unimplemented,
    });
    await clients.process.sendSignal({ process: byPid(sleep.pid), signal: Signal.SIGKILL });
    await sleep.done;
  });

  test("killing a shell kills its children", async () => {
    const shell = await inBackground(
      clients.process.start({ process: sh("sleep 77 & sleep 78; echo never") }, as("user")),
    );
    await expect
      .poll(async () => (await run("pgrep -c -f '^sleep 7[78]'", { user: "root" })).stdout.toString())
      .toBe("2\n");
    await clients.process.sendSignal({ process: byPid(shell.pid), signal: Signal.SIGKILL });
    expect((await shell.done).end?.status).toBe("signal: killed");
    await expect
      .poll(async () => (await run("pgrep -c -f '^sleep 7[78]'", { user: "root" })).stdout.toString())
      .toBe("0\n");
    expect((await clients.process.list({})).processes).toEqual([]);
  });

  test("a child that holds the output delays the end, until a signal is sent", async () => {
    const shell = await inBackground(
      clients.process.start({ process: sh("setsid sleep 79 & echo started; exit 5") }, as("user")),
    );
    await expect.poll(shell.text).toContain("started");
    await expect.poll(async () => (await run(`test -d /proc/${shell.pid}`)).end?.exitCode).toBe(1);
    expect((await clients.process.list({})).processes.map(({ pid }) => pid)).toEqual([shell.pid]);
    await clients.process.sendSignal({ process: byPid(shell.pid), signal: Signal.SIGKILL });
    const seen = await shell.done;
    expect([seen.stdout.toString(), seen.end?.exitCode]).toEqual(["started\n", 5]);
    await run("pkill -f '^sleep 79'", { user: "root" });
  });

  test("output of a background child that ends by itself is still delivered", async () => {
    const seen = await run("(sleep 0.3; echo late) & echo early");
    expect(seen.stdout.toString()).toBe("early\nlate\n");
  });

  test("a deadline kills the process and ends the stream with its own error", async () => {
    const started = Date.now();
    const stream = clients.process.start({ process: sh("sleep 70; echo never") }, { ...as("user"), timeoutMs: 400 });
    await expect(toEnd(stream)).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    expect(Date.now() - started).toBeLessThan(60_000);
    await expect
      .poll(async () => (await run("pgrep -c -f '^sleep 70'", { user: "root" })).stdout.toString())
      .toBe("0\n");
  });

  test("a process continues when its client leaves, until the client's deadline", async () => {
    const leaving = new AbortController();
    const stream = clients.process.start(
      { process: sh("sleep 71"), tag: "deserted" },
      { signal: leaving.signal, headers: { ...as("user").headers, "connect-timeout-ms": "8000" } },
    );
    await stream[Symbol.asyncIterator]().next();
    leaving.abort();
    const live = async () => (await clients.process.list({})).processes.map(({ tag }) => tag);
    expect(await live()).toEqual(["deserted"]);
    await expect(toEnd(clients.process.connect({ process: byTag("deserted") }))).rejects.toMatchObject({
      code: Code.DeadlineExceeded,
    });
    await expect.poll(live).toEqual([]);
  });
});

describe("finding a process again", () => {
  test("a late follower gets new output only, and the end", async () => {
    const first = await inBackground(
      clients.process.start({ process: sh("echo before; read go; echo after"), tag: "late" }, as("user")),
    );
    await expect.poll(first.text).toBe("before\n");
    const second = await inBackground(clients.process.connect({ process: byPid(first.pid) }));
    const third = await inBackground(clients.process.connect({ process: byTag("late") }));
    await clients.process.sendInput({
      process: byPid(first.pid),
      input: { input: { case: "stdin", value: Buffer.from("\n") } },
    });
    expect((await first.done).stdout.toString()).toBe("before\nafter\n");
    expect(
      [await second.done, await third.done].map((seen) => [seen.pid, seen.stdout.toString(), seen.end?.exited]),
    ).toEqual([
      [first.pid, "after\n", true],
      [first.pid, "after\n", true],
    ]);
  });

  test("a process that has just ended still reports its exit", async () => {
    const { pid } = await toEnd(clients.process.start({ process: sh("exit 6"), tag: "brief" }, as("user")));
    for (const selector of [byPid(pid), byTag("brief")]) {
      const seen = await toEnd(clients.process.connect({ process: selector }));
      expect([seen.pid, seen.end?.exitCode]).toEqual([pid, 6]);
    }
  });

  test("a tag is found among others, and the list shows the requested command", async () => {
    const config = { cmd: "sleep", args: ["60"], envs: { K: "v" }, cwd: "/" };
    const all = await Promise.all(
      ["a", "b", "c"].map((tag) => inBackground(clients.process.start({ process: config, tag }, as("user")))),
    );
    const { processes } = await clients.process.list({});
    expect(new Set(processes.map(({ tag }) => tag))).toEqual(new Set(["a", "b", "c"]));
    expect(processes[0]?.config).toMatchObject(config);
    for (const tag of ["c", "a", "b"])
      await clients.process.sendSignal({ process: byTag(tag), signal: Signal.SIGTERM });
    for (const { done } of all) expect((await done).end?.status).toBe("signal: terminated");
  });

  test("an unknown process id or tag is not found", async () => {
    await expect(toEnd(clients.process.connect({ process: byPid(999_999) }))).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: "process with pid 999999 not found",
    });
    await expect(toEnd(clients.process.connect({ process: byTag("x") }))).rejects.toMatchObject({
      rawMessage: "process with tag x not found",
    });
    await expect(clients.process.closeStdin({})).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
});

test("forty commands at once do not mix up their output", async () => {
  const all = await Promise.all(
    Array.from({ length: 40 }, (_, i) => run(`for n in 1 2 3 4 5; do echo ${i}; done; exit ${i}`)),
  );
  all.forEach((seen, i) => expect([seen.stdout.toString(), seen.end?.exitCode]).toEqual([`${i}\n`.repeat(5), i]));
});

test("no process, pipe or follower is left behind", async () => {
  await expectNoneLeft(clients);
});
