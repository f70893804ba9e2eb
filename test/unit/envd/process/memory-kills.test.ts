import { expect, test } from "vitest";
import { describeExit } from "../../../../envd/process/exit-status.ts";
import { parseMemoryCounter } from "../../../../envd/process/memory-counter.ts";
import { type MemoryCounter, MemoryKills } from "../../../../envd/process/memory-kills.ts";
import { Journal } from "../../../../envd/runtime/journal.ts";

const LIMIT = 1024 * 1024 * 1024;
const KILLED = describeExit(9);

function kernel(kills = 0) {
  const state = { kills, now: 1_000, limitBytes: LIMIT as number | undefined };
  const journal = new Journal(() => state.now);
  const read = (): MemoryCounter => ({ kills: state.kills, limitBytes: state.limitBytes });
  const memory = new MemoryKills({ read, journal, now: () => state.now });
  const logged = () => journal.read(0, 100).entries.map(({ level, message }) => `${level} ${message}`);
  return { state, memory, logged };
}

test("a process that was killed while the counter rose was out of memory", () => {
  const { state, memory, logged } = kernel();
  const explain = memory.watch();
  state.kills = 1;
  expect(explain(KILLED)).toEqual({
    exitCode: -1,
    exited: false,
    status: "signal: killed",
    error: "signal: killed (out of memory: limit 1024 MiB)",
  });
  expect(logged()).toEqual(["error the kernel killed a process: out of memory: limit 1024 MiB"]);
});

test("a shell whose command was killed for memory says so", () => {
  const { state, memory } = kernel();
  const explain = memory.watch();
  state.kills = 1;
  expect(explain(describeExit(137 << 8))).toEqual({
    exitCode: 137,
    exited: true,
    status: "exit status 137",
    error: "exit status 137 (out of memory: limit 1024 MiB)",
  });
});

test("ends of processes that memory does not explain are left as they are", () => {
  const { state, memory } = kernel();
  const explain = memory.watch();
  state.kills = 1;
  for (const status of [0, 1 << 8, 15]) expect(explain(describeExit(status))).toEqual(describeExit(status));
});

test("a kill for memory from before a process's start explains nothing", () => {
  const { state, memory } = kernel(3);
  expect(memory.watch()(KILLED)).toEqual(KILLED);
  state.kills = 4;
  expect(memory.watch()(KILLED)).toEqual(KILLED);
});

test("one kill for memory explains the end of one process", () => {
  const { state, memory } = kernel();
  const [one, other] = [memory.watch(), memory.watch()];
  state.kills = 1;
  expect(one(KILLED).error).toContain("out of memory");
  expect(other(KILLED)).toEqual(KILLED);
  state.kills = 2;
  expect(other(KILLED).error).toContain("out of memory");
});

test("a kill that was seen long ago does not explain an end of now", () => {
  const { state, memory } = kernel();
  const explain = memory.watch();
  state.kills = 1;
  memory.look();
  state.now += 6_000;
  expect(explain(KILLED)).toEqual(KILLED);
});

test("the counter of a restored sandbox begins again at zero", () => {
  const { state, memory, logged } = kernel();
  state.kills = 7;
  memory.look();
  const explain = memory.watch();
  state.kills = 0;
  memory.look();
  state.kills = 2;
  expect(explain(KILLED).error).toContain("out of memory");
  expect(logged()).toEqual([
    "error the kernel killed 7 processes: out of memory: limit 1024 MiB",
    "error the kernel killed 2 processes: out of memory: limit 1024 MiB",
  ]);
});

test("without a limit of its own the sandbox used up the machine's memory", () => {
  const { state, memory } = kernel();
  state.limitBytes = undefined;
  const explain = memory.watch();
  state.kills = 1;
  expect(explain(KILLED).error).toBe("signal: killed (out of memory)");
});

test("a kernel that does not count changes nothing", () => {
  const journal = new Journal(() => 0);
  const memory = new MemoryKills({ read: () => undefined, journal, now: () => 0 });
  expect(memory.watch()(KILLED)).toEqual(KILLED);
});

test("a million kills take no memory", () => {
  const { state, memory, logged } = kernel();
  const explain = memory.watch();
  state.kills = 1_000_000;
  expect(explain(KILLED).error).toContain("out of memory");
  expect(logged()).toEqual(["error the kernel killed 1000000 processes: out of memory: limit 1024 MiB"]);
});

test.each([
  ["low 0\nhigh 0\nmax 5\noom 2\noom_kill 1\noom_group_kill 0\n", "536870912\n", { kills: 1, limitBytes: 536870912 }],
  ["oom_kill_disable 0\nunder_oom 0\noom_kill 12\n", "9223372036854771712\n", { kills: 12, limitBytes: undefined }],
  ["low 0\noom_kill 0\n", "max\n", { kills: 0, limitBytes: undefined }],
  ["oom_kill_disable 0\nunder_oom 0\n", "1", undefined],
  ["", "", undefined],
])("the cgroup's files %j and %j are read as %j", (events, limit, counter) => {
  expect(parseMemoryCounter(events, () => limit)).toEqual(counter);
});
