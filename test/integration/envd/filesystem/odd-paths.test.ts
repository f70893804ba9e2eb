/** Paths that lead nowhere, round in circles, or where nothing can be made: every call answers, and says why. */

import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { as, sharedEnvd } from "../running-envd.ts";

const { envd, clients } = sharedEnvd();
const here = (script: string) => execFileSync("bash", ["-c", `cd ${envd.home} && ${script}`], { uid: 1000, gid: 1000 });
beforeEach(() => {
  execFileSync("bash", ["-c", `chattr -R -i ${envd.home} 2>/dev/null; rm -rf ${envd.home}/*`]);
});

const upload = async (path: string, body = "x") => {
  const response = await fetch(`${envd.url}/files?username=user&path=${encodeURIComponent(path)}`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body,
    signal: AbortSignal.timeout(20_000),
  });
  return { status: response.status, text: await response.text() };
};
const quick = (more: object = {}) => ({ ...as("user"), timeoutMs: 20_000, ...more });

/** Each makes its parents: the path of a file, the path of a directory, the destination of a move. */
const makers: Record<string, (path: string) => Promise<unknown>> = {
  upload: async (path) => {
    const { status, text } = await upload(`${path}/f`);
    if (status !== 200) throw new Error(text);
  },
  compose: async (path) => {
    here("echo a > part");
    const response = await fetch(`${envd.url}/files/compose?username=user`, {
      method: "POST",
      body: JSON.stringify({ source_paths: ["part"], destination: `${path}/f` }),
      signal: AbortSignal.timeout(20_000),
    });
    if (!response.ok) throw new Error(await response.text());
  },
  makeDir: (path) => clients.filesystem.makeDir({ path }, quick()),
  move: (path) => {
    here("echo a > source");
    return clients.filesystem.move({ source: "source", destination: `${path}/f` }, quick());
  },
};

describe.each(Object.entries(makers))("%s below", (_name, make) => {
  test.each([
    ["a link to nothing", "ln -s /nonexist dl", "dl/a", /link to nothing/],
    ["a link to nothing, deep", "ln -s nothing dl", "dl/a/b/c/d", /link to nothing/],
    ["a link to a link to nothing", "ln -s b a; ln -s nothing b", "a/x", /link to nothing/],
    ["a link to itself", "ln -s self self", "self/a", /cycle of symbolic links/],
    ["a circle of links", "ln -s b a; ln -s c b; ln -s a c", "a/x/y", /cycle of symbolic links/],
    ["a file", "echo > file", "file/x", /not a directory/],
    ["a name that is too long", "true", `${"n".repeat(256)}/a`, /too long/],
    ["a path that is too long", "true", "d/".repeat(2_100), /too long/],
    ["/proc, which takes no directories", "true", "/proc/made/up", /takes no new entries|permission denied/],
  ])("%s is refused, naming the cause", async (_case, script, path, words) => {
    here(script);
    await expect(make(path)).rejects.toThrow(words);
  });

  test("a link to a directory of the same user is done there", async () => {
    here("mkdir real; ln -s real link");
    await make("link/a/b");
    expect(existsSync(join(envd.home, "real/a/b"))).toBe(true);
  });
});

test("a file is made where a link leads to nothing, as open(2) makes it", async () => {
  here("mkdir d; ln -s d/target link; ln -s link chain");
  expect((await upload("chain", "through")).status).toBe(200);
  expect(readFileSync(join(envd.home, "d/target"), "utf8")).toBe("through");
  expect(lstatSync(join(envd.home, "chain")).isSymbolicLink()).toBe(true);
});

test("a link to a file in a directory that is missing is not written, and makes no directory", async () => {
  here("ln -s no/such/dir/f link");
  expect((await upload("link")).status).toBe(404);
  expect(existsSync(join(envd.home, "no"))).toBe(false);
});

test("circles and dead ends are listed and removed as what they are", async () => {
  here("mkdir d; ln -s self d/self; ln -s nothing d/dead; ln -s .. d/up");
  const { entries } = await clients.filesystem.listDir({ path: "d", depth: 9 }, quick());
  expect(entries.map(({ name }) => name)).toEqual(["dead", "self", "up"]);
  await expect(clients.filesystem.listDir({ path: "d/self" }, quick())).rejects.toMatchObject({
    code: Code.FailedPrecondition,
  });
  await clients.filesystem.remove({ path: "d" }, quick());
  expect(existsSync(join(envd.home, "d"))).toBe(false);
});

test("a call that the client leaves stops its walk", async () => {
  here("mkdir -p d/{1..40}/{1..40}");
  const leaving = new AbortController();
  const removal = clients.filesystem.remove({ path: "d" }, { ...as("user"), signal: leaving.signal });
  const left = () => readdirSync(join(envd.home, "d"), { recursive: true }).length;
  await expect.poll(left).toBeLessThan(40 + 40 * 40);
  leaving.abort();
  await expect(removal).rejects.toMatchObject({ code: Code.Canceled });
  await clients.filesystem.remove({ path: "d" }, quick({ timeoutMs: 60_000 }));
  expect(existsSync(join(envd.home, "d"))).toBe(false);
});

describe("a removal", () => {
  test("of a directory that programs write into succeeds, or says that they do", async () => {
    for (let round = 0; round < 10; round += 1) {
      here("mkdir busy");
      const { events, stop } = await writer("while :; do : > busy/$((i++)); : > busy/$((i % 50)); done 2>/dev/null");
      await clients.filesystem.remove({ path: "busy" }, quick({ timeoutMs: 60_000 })).catch((error: unknown) => {
        expect(String(error)).toMatch(/programs write into it/);
      });
      await stop();
      await events;
      here("rm -rf busy");
    }
  }, 120_000);

  test("of what the kernel does not let go says so, as root, too", async () => {
    for (const path of ["/proc/uptime", "/proc/self/status", "/sys/kernel/mm"])
      await expect(clients.filesystem.remove({ path }, { ...as("root"), timeoutMs: 20_000 })).rejects.toMatchObject({
        code: Code.PermissionDenied,
        rawMessage: expect.stringContaining(path) as string,
      });
  });

  test("of what is not there, or below a file, is done", async () => {
    here("echo > file");
    for (const path of ["nothing", "file/x", "no/such/dir"]) await clients.filesystem.remove({ path }, quick());
  });

  test("of a tree that is deeper than a path can be long is done", async () => {
    const script =
      "import os; os.mkdir('deep'); os.chdir('deep'); [(os.mkdir('d' * 8), os.chdir('d' * 8)) for _ in range(600)]";
    execFileSync("python3", ["-c", script], { cwd: envd.home, uid: 1000, gid: 1000 });
    await clients.filesystem.remove({ path: "deep" }, quick({ timeoutMs: 60_000 }));
    expect(existsSync(join(envd.home, "deep"))).toBe(false);
  });
});

/** A program of the user's that runs until `stop`. */
async function writer(script: string): Promise<{ events: Promise<unknown>; stop: () => Promise<unknown> }> {
  const process = { cmd: "/bin/bash", args: ["-c", `cd ${envd.home}; i=0; ${script}`], envs: {} };
  const events = clients.process.start({ process, stdin: false }, as("user"))[Symbol.asyncIterator]();
  const first = await events.next();
  const started = first.value?.event?.event;
  const pid = started?.case === "start" ? started.value.pid : 0;
  const rest = async () => {
    while (!(await events.next()).done);
  };
  const selector = { selector: { case: "pid" as const, value: pid } };
  return { events: rest(), stop: () => clients.process.sendSignal({ process: selector, signal: 9 }) };
}

test.each([
  [
    "a directory over a file",
    "mkdir from; echo > to",
    "to",
    /destination '.*\/to' is not a directory, but '.*\/from' is one/,
  ],
  ["a file over a directory", "echo > from; mkdir to", "to", /destination '.*\/to' is a directory/],
  [
    "a directory over a full one",
    "mkdir from to; echo > to/x",
    "to",
    /destination '.*\/to' is a directory that is not empty/,
  ],
  ["a directory into itself", "mkdir from", "from/x", /'.*\/from\/x' is inside '.*\/from'/],
  ["a file below a file", "echo > from; echo > to", "to/x", /part of path '.*\/to(\/x)?' is not a directory/],
])("a move of %s names what is in the way", async (_case, script, destination, words) => {
  here(script);
  await expect(clients.filesystem.move({ source: "from", destination }, quick())).rejects.toThrow(words);
  expect(existsSync(join(envd.home, "from"))).toBe(true);
});

test("a move of a directory into a file system that is mounted inside of it says so, and leaves nothing there", async () => {
  here("mkdir -p from/mounted; echo a > from/f");
  const mounted = join(envd.home, "from/mounted");
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m,nr_inodes=100", "tmpfs", mounted]);
  try {
    const move = clients.filesystem.move({ source: "from", destination: "from/mounted/x" }, quick());
    await expect(move).rejects.toThrow(/'.*\/from\/mounted\/x' is inside '.*\/from'/);
    expect(readdirSync(mounted)).toEqual([]);
    expect(readFileSync(join(envd.home, "from/f"), "utf8")).toBe("a\n");
  } finally {
    execFileSync("umount", [mounted]);
  }
});

test("the root directory is neither moved, nor replaced, nor removed, and what is at the destination stays", async () => {
  here("echo kept > file");
  const calls = [
    () => clients.filesystem.move({ source: "/", destination: "file" }, quick()),
    () => clients.filesystem.move({ source: "file", destination: "/" }, quick()),
    () => clients.filesystem.remove({ path: "/" }, quick()),
  ];
  for (const call of calls)
    await expect(call()).rejects.toMatchObject({
      code: Code.FailedPrecondition,
      rawMessage: expect.stringContaining("'/' is the root directory") as string,
    });
  expect(lstatSync(join(envd.home, "file")).isFile()).toBe(true);
  expect(readFileSync(join(envd.home, "file"), "utf8")).toBe("kept\n");
});

test.each(["", ".", "..", "./", "d/.", "d/..", "~/."])("%j is neither removed, moved nor replaced", async (path) => {
  here("mkdir -p d; echo kept > d/file; echo kept > file");
  const calls = [
    () => clients.filesystem.remove({ path }, quick()),
    () => clients.filesystem.move({ source: path, destination: join(envd.root, "moved") }, quick()),
    () => clients.filesystem.move({ source: "file", destination: path }, quick()),
  ];
  for (const call of calls)
    await expect(call()).rejects.toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: expect.stringMatching(/^the path is empty|ends in '.' or '..'/) as string,
    });
  expect(new Set(readdirSync(envd.home, { recursive: true, encoding: "utf8" }))).toEqual(
    new Set(["d", "d/file", "file"]),
  );
});

test("names of dots that are entries are removed", async () => {
  here("mkdir ... .d d; echo > d/x.; echo > d/..y");
  for (const path of ["...", ".d", "d/x.", "d/..y", "d/"]) await clients.filesystem.remove({ path }, quick());
  expect(readdirSync(envd.home)).toEqual([]);
});

test("a move into a name that is too long names the destination", async () => {
  here("echo > from");
  await expect(clients.filesystem.move({ source: "from", destination: "t".repeat(300) }, quick())).rejects.toThrow(
    /ttt.*too long/,
  );
});

test("a file that cannot be read to its end answers with the reason", async () => {
  const response = await fetch(`${envd.url}/files?username=root&path=/proc/self/mem`);
  expect(response.status).toBe(400);
  expect(((await response.json()) as { message: string }).message).toContain("/proc/self/mem");
});
