/**
 * The rows of the matrix on this machine, without a sandbox: all of their scripts and programs can be read, and those whose programs
 * this machine has start, and answer as a row must.
 */

import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { problemOf, type Seen, seenIn } from "../../matrix/judge.ts";
import { closureOf } from "../../matrix/packages.ts";
import { directoryOf, PRELUDE, type Program } from "../../matrix/program.ts";
import { PROGRAMS } from "../../matrix/programs.ts";
import { checkout } from "../../support/platform/platform.ts";

const execute = promisify(execFile);

/** What every machine that runs these tests has: Python, Node, Perl, compilers, git, tools of util-linux. */
const HERE = [
  "Python",
  "Python's multiprocessing",
  "Node",
  "Node with worker threads",
  "Perl",
  "C",
  "bash",
  "A WebSocket server with a live client",
  "Node with --watch",
  "vite",
  "npm install, half way",
  "git clone, half way",
  "A build with make, half way",
  "An open file that is deleted",
  "A sparse file of 4 GiB, mapped",
  "A tree of 300 processes",
  "A chain of twenty FIFOs",
  "Shared memory and semaphores of processes",
  "System V shared memory",
  "Locks of files (flock and fcntl)",
  "A Unix socket with an abstract name",
  "TCP connections of IPv4 and IPv6 inside the sandbox",
  "A UDP socket",
  "Descriptors that go through a Unix socket",
  "A watch of files (inotify)",
  "epoll with an event descriptor and a timer",
  "Interval timers and handlers of signals",
  "A pseudo-terminal with a shell",
  "SQLite in WAL mode, with a reader",
];

/** What of a language finds mistakes in texts without running them, all at once where it can. */
const CHECKS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  ".py": ["python3", "-c", "import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]"],
  ".cjs": ["sh", "-c", `for name; do '${process.execPath}' --check "$name" || exit; done`, "sh"],
  ".mjs": ["sh", "-c", `for name; do '${process.execPath}' --check "$name" || exit; done`, "sh"],
  ".sh": ["bash", "-n"],
};

describe("the rows of the matrix", () => {
  test("have scripts that bash can read", () => {
    const wrong = PROGRAMS.flatMap(({ name, start, ask }) =>
      [start, ask].flatMap((text) => {
        const { status, stderr } = spawnSync("bash", ["-n"], { input: `${PRELUDE}${text}\n`, encoding: "utf8" });
        return status === 0 && stderr === "" ? [] : [`${name}: ${stderr}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(CHECKS))(
    "have no file %s that its language cannot read",
    (extension, [command, ...args]) => {
      const directory = folder();
      const files = PROGRAMS.flatMap((program) =>
        Object.entries(program.files)
          .filter(([name]) => extname(name) === extension)
          .map(([name, data]) => ({ path: join(directory, `${directoryOf(program)}-${name}`), data })),
      );
      expect(files.length).toBeGreaterThan(0);
      for (const { path, data } of files) writeFileSync(path, data);
      const { status, stderr } = spawnSync(command, [...args, ...files.map(({ path }) => path)], { encoding: "utf8" });
      expect([status, stderr]).toEqual([0, ""]);
    },
  );

  test.each(HERE)("%s starts, and answers three questions as the same program", async (name) => {
    const program = PROGRAMS.find((each) => each.name === name);
    if (program === undefined) throw new Error("the matrix has no such row");
    const script = here(program);
    await script(program.start);
    let seen = seenIn(await script(program.ask));
    for (let questions = 0; questions < 2; questions++) seen = await next(program, script, seen);
  });
});

async function next(program: Program, script: (text: string) => Promise<string>, before: Seen): Promise<Seen> {
  let after = before;
  await expect
    .poll(
      async () => {
        after = seenIn(await script(program.ask));
        return problemOf(program, "pause", before, after);
      },
      { timeout: program.counts === "time" ? 20_000 : 1, interval: 200 },
    )
    .toBe(undefined);
  return after;
}

/** The ports of rows, which another run of these tests may have on this machine at the same time. */
const PORTS = 200 + Math.floor(Math.random() * 100);
const withOwnPorts = (text: string) => text.replaceAll(/\b82(\d\d)\b/g, `${PORTS}$1`);

/** The program's directory on this machine; whatever it has started ends with the test. */
function here(program: Program): (text: string) => Promise<string> {
  const directory = folder();
  for (const [name, data] of Object.entries(program.files)) writeFileSync(join(directory, name), withOwnPorts(data));
  if (program.packages.length > 0) symlinkSync(join(checkout, "node_modules"), join(directory, "node_modules"));
  onTestFinished(() => {
    const pids = existsSync(join(directory, "pids")) ? readFileSync(join(directory, "pids"), "utf8") : "";
    for (const pid of pids.split("\n").filter((line) => /^\d+$/.test(line)))
      spawnSync("kill", ["-KILL", "--", `-${pid}`]);
  });
  const env = { HOME: directory, PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ""}`, LANG: "C.UTF-8" };
  return async (text) =>
    (await execute("bash", ["-c", withOwnPorts(`${PRELUDE}${text}`)], { cwd: directory, env, timeout: 60_000 })).stdout;
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "svc-matrix-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

test("packages for a sandbox come with all that they need", () => {
  const modules = join(checkout, "node_modules");
  expect(closureOf(modules, ["ws"])).toEqual(["ws"]);
  const ofTsx = closureOf(modules, ["tsx"]);
  expect(ofTsx).toEqual(expect.arrayContaining(["esbuild", `@esbuild/${process.platform}-${process.arch}`, "tsx"]));
});
