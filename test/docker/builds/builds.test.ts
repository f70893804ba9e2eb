/**
 * Templates that the agent builds on the real Docker daemon: the effects of steps, start commands, pools, cancellation and
 * crashes.
 */

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { BuildBody } from "../../../shared/agent-api/build-shapes.ts";
import {
  bodyOf,
  buildsOn,
  dangling,
  type Entries,
  type Finished,
  imageNames,
  messages,
  result,
  run,
  SLOW,
  type Step,
} from "../../support/agent/agent-builds.ts";
import { containers, RESOURCES, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { command } from "../../support/sandbox/envd-commands.ts";

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_BUILD_LOCAL_IMAGES: "*" });
});
afterAll(() => agent.close());

const { built, copy, sandboxOf, start, untilSaid } = buildsOn(() => agent);

describe.each(["base", "svc/test-busybox"])("from %s", (image) => {
  test("steps have their effects, and a sandbox of the template has them", async () => {
    const done = await built(image, [
      { type: "ENV", variables: [["GREETING", 'it\'s "here"\n$(id) `id`']] },
      { type: "ENV", variables: [["TWICE", "$GREETING!"]] },
      { type: "WORKDIR", path: "/srv/app" },
      run('pwd > where; id -un > who; printf %s "$TWICE" > said; echo to-stderr >&2'),
      { type: "USER", user: "root" },
      run("id -un > /srv/root-was-here; touch /etc/by-root"),
      { type: "USER", user: "newcomer" },
      { type: "WORKDIR", path: "sub" },
    ]);
    expect(result(done).settings).toMatchObject({
      user: "newcomer",
      workdir: "/srv/app/sub",
      envs: { TWICE: 'it\'s "here"\n$(id) `id`!' },
    });
    expect(messages(done)).toContain("[builder 4/8] [stderr]: to-stderr");
    const sandbox = await sandboxOf(done);
    const read = (path: string) => command(sandbox.address, `cat ${path}`, { user: "user" });
    expect((await read("/srv/app/where")).output).toBe("/srv/app");
    expect((await read("/srv/app/who")).output).toBe("user");
    expect((await read("/srv/app/said")).output).toBe('it\'s "here"\n$(id) `id`!');
    expect((await read("/srv/root-was-here")).output).toBe("root");
    expect(
      await command(sandbox.address, 'pwd; id -un; echo "$GREETING" | head -n 1; echo ~', { user: "newcomer" }),
    ).toEqual({
      code: 0,
      output: '/srv/app/sub\nnewcomer\nit\'s "here"\n/home/newcomer',
    });
    await agent.stop(sandbox.executionId);
    await agent.call.deleteBuild({ params: { buildId: done.buildId } });
  });

  test("files are copied as the contract says", async () => {
    const tree = [
      { name: "folder", type: "directory" as const },
      { name: "folder/a.txt", mode: 0o640, content: "a" },
      { name: "folder/deep/b.txt", content: "b" },
      { name: "folder/link", type: "symlink" as const, linkname: "a.txt" },
    ];
    const done = await built(image, [
      await copy(tree, "folder", "into/"),
      await copy(tree, "folder/*", "/srv/globbed"),
      await copy([{ name: "one.txt", content: "1" }], "one.txt", "/srv/renamed.txt"),
      await copy([{ name: "one.txt", content: "1" }], "one.txt", "/srv/"),
      await copy([{ name: "su", mode: 0o4755, content: "x" }], "su", "/srv/su-user"),
      await copy([{ name: "su", mode: 0o4755, content: "x" }], "su", "/srv/su-root", { user: "root" }),
      await copy(tree, "folder", "/srv/moded", { user: "root", mode: "0700" }),
    ]);
    const sandbox = await sandboxOf(done);
    const look = async (text: string) => (await command(sandbox.address, text, { user: "root" })).output;
    expect(await look("cat /home/user/into/deep/b.txt /srv/globbed/deep/b.txt /srv/renamed.txt /srv/one.txt")).toBe(
      "bb11",
    );
    expect(await look("stat -c '%U %a' /home/user/into /home/user/into/a.txt")).toMatch(/^user \d+\nuser 640$/);
    expect(await look("readlink /home/user/into/link; readlink /srv/globbed/link")).toBe("a.txt\na.txt");
    expect(await look("stat -c '%U %a' /srv/su-user /srv/su-root")).toBe("user 755\nroot 4755");
    expect(await look("stat -c '%U %a' /srv/moded/deep /srv/moded/a.txt /tmp /home/user")).toMatch(
      /^root 700\nroot 700\nroot 1777\nuser 7\d\d$/,
    );
    expect(await look("ls -A /tmp")).not.toContain(".svc");
    await agent.stop(sandbox.executionId);
    await agent.call.deleteBuild({ params: { buildId: done.buildId } });
  });
});

test("the second build of a definition takes all of it from the cache, and one with another step starts from there", async () => {
  const steps = [
    { type: "ENV" as const, variables: [["A", "1"]] as [string, string][] },
    run("sleep 3; head -c 20000000 /dev/urandom > big"),
    run("echo 1 > small"),
  ];
  const first = await built("base", steps);
  const second = await built("base", steps);
  expect(result(second).settings).toEqual(result(first).settings);
  console.log(`first ${first.ms.toFixed(0)} ms, second ${second.ms.toFixed(0)} ms`);
  expect(messages(second)).toContain("CACHED [builder 1/3] ENV A");
  expect(messages(second).filter((line) => line.startsWith("CACHED"))).toHaveLength(3);
  const third = await built("base", [...steps.slice(0, 2), run("echo 2 > small")]);
  expect(messages(third).filter((line) => line.startsWith("CACHED"))).toHaveLength(2);
  const forced = await built(
    "base",
    [...steps.slice(0, 2), run("echo 1 > small")].map((step, index) => ({ ...step, force: index === 2 })),
  );
  expect(messages(forced).filter((line) => line.startsWith("CACHED"))).toHaveLength(2);
  const other = await built("base", steps.slice(2), { templateId: "t2" });
  expect(messages(other).filter((line) => line.startsWith("CACHED"))).toEqual([]);
  for (const { buildId } of [first, second, third, forced, other])
    await agent.call.deleteBuild({ params: { buildId } });
  await expect.poll(dangling, SLOW).toEqual([]);
});

test.each<[string, Step, RegExp, string]>([
  ["a command that fails", run("echo out; exit 3"), /^failed to run command 'echo out; exit 3': exit status 3$/, "2"],
  [
    "an unknown user",
    run("whoami", "root123"),
    /^failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'$/,
    "2",
  ],
  [
    "files that were never uploaded",
    { type: "COPY", source: "a", destination: "b", filesHash: "f".repeat(64) },
    /not uploaded/,
    "2",
  ],
])("%s fails the build with its step", async (_name, step, message, at) => {
  const done = await built("base", [run("true"), step]);
  expect(done.state.status).toBe("error");
  expect(done.state.reason).toEqual({ message: expect.stringMatching(message) as string, step: at });
  await expect.poll(containers, SLOW).toEqual([]);
  await expect.poll(async () => (await imageNames()).filter((name) => name.includes(done.buildId)), SLOW).toEqual([]);
});

const HOSTILE: [string, Entries, RegExp][] = [
  ["an absolute path", [{ name: "/etc/x", content: "x" }], /absolute path/],
  ["a way out", [{ name: "../../x", content: "x" }], /leads out/],
  [
    "a file behind its link",
    [
      { name: "a", type: "symlink", linkname: "/etc" },
      { name: "a/cron.d/x", content: "x" },
    ],
    /symbolic link/,
  ],
  ["a hard link out", [{ name: "a", type: "link", linkname: "/etc/shadow" }], /absolute/],
  ["a device", [{ name: "a", type: "block-device", devmajor: 8, devminor: 0 }], /device/],
  ["100 000 entries", Array.from({ length: 100_000 }, (_, index) => ({ name: `f${index}` })), /80000 entries/],
  ["a bomb", [{ name: "zeros", content: "\0".repeat(100_000_000) }], /200 times/],
];

test.each(HOSTILE)("an archive with %s is refused with a reason", async (_name, entries, reason) => {
  const done = await built("base", [await copy(entries, ".", "/srv")]);
  expect(done.state.reason).toEqual({ message: expect.stringMatching(reason) as string, step: "1" });
  await expect.poll(containers, SLOW).toEqual([]);
});

test("a start command runs in the sandboxes of its template, which start with or without its memory", async () => {
  const done = await built("base", [run("echo hello > index.html")], {
    startCmd: "python3 -m http.server 8000",
    readyCmd: '[ -n "$(ss -Htuln sport = :8000)" ]',
  });
  const lines = messages(done);
  const order = ["Running start command", "Waiting for template to be ready", "Template is ready"].map((line) =>
    lines.findIndex((one) => one.includes(line)),
  );
  expect(order).toEqual([...order].sort((a, b) => a - b));
  expect(result(done).snapshot).toMatchObject({ memory: true });
  const get = async (address: string) =>
    (await fetch(`http://${address}:8000/index.html`, { signal: AbortSignal.timeout(20_000) })).text();
  const warm = await sandboxOf(done);
  expect(warm.restored).toBe("memory");
  expect(await get(warm.address)).toBe("hello\n");
  await agent.stop(warm.executionId);
  const cold = await sandboxOf(done, { memory: false });
  // The server answers at once, because the boot waited for the template's ready command.
  expect(await get(cold.address)).toBe("hello\n");
  await agent.stop(cold.executionId);
  // The report leaves out the template's own snapshot: its fate is not the orchestrator's decision.
  expect(agent.heartbeats.at(-1)?.snapshots).toEqual([]);
  await agent.call.deleteBuild({ params: { buildId: done.buildId } });
  await expect
    .poll(async () => (await imageNames()).filter((name) => /svc\/(snapshot|build)/.test(name)), SLOW)
    .toEqual([]);
});

test("sandboxes of a template with memory come from the pool, each a copy of its own", async () => {
  const done = await built("base", [run("echo hello > index.html")], {
    startCmd: "python3 -m http.server 8000",
    readyCmd: '[ -n "$(ss -Htuln sport = :8000)" ]',
  });
  const build = { templateId: "t1", buildId: done.buildId, image: result(done).image };
  onTestFinished(() => agent.setPools([]));
  agent.setPools([{ build, resources: RESOURCES, size: 2 }]);
  const ready = () => agent.heartbeats.at(-1)?.load.pools.find(({ buildId }) => buildId === done.buildId)?.ready;
  await expect.poll(ready, SLOW).toBe(2);
  const started: { address: string; executionId: string }[] = [];
  for (let count = 0; count < 2; count++) {
    const begun = performance.now();
    const sandbox = await sandboxOf(done);
    console.log(`from the pool in ${(performance.now() - begun).toFixed(0)} ms`);
    expect(sandbox).toMatchObject({ warm: true, restored: "memory" });
    const page = await fetch(`http://${sandbox.address}:8000/index.html`, { signal: AbortSignal.timeout(20_000) });
    expect(await page.text()).toBe("hello\n");
    expect((await command(sandbox.address, "echo $E2B_SANDBOX_ID")).output).toBe(sandbox.sandboxId);
    started.push(sandbox);
  }
  expect(new Set(started.map(({ address }) => address)).size).toBe(2);
  await expect.poll(ready, SLOW).toBe(2);
  // The next agent keeps these sandboxes and the pool.
  await agent.crash();
  agent.heartbeats.length = 0;
  await agent.launch();
  await expect.poll(ready, SLOW).toBe(2);
  await expect.poll(containers, SLOW).toHaveLength(4);
  expect(await sandboxOf(done)).toMatchObject({ warm: true, restored: "memory" });
  agent.setPools([]);
  for (const { executionId } of started) await agent.stop(executionId);
  await expect.poll(async () => (await containers()).length, SLOW).toBe(1);
});

test("a template on a template on a template adds up, and runs the start command where it came from", async () => {
  const from = (below: Finished): Pick<BuildBody, "from"> => ({
    from: {
      is: "build",
      build: { templateId: "t1", buildId: below.buildId, image: result(below).image },
      settings: result(below).settings,
    },
  });
  const first = await built(
    "base",
    [{ type: "ENV", variables: [["ONE", "1"]] }, { type: "WORKDIR", path: "/one" }, run("touch f1")],
    {
      startCmd: 'echo "$ONE $TWO" > /one/started',
    },
  );
  const second = await built(
    "",
    [
      { type: "ENV", variables: [["TWO", "2"]] },
      { type: "USER", user: "root" },
      { type: "WORKDIR", path: "/two" },
      run("touch f2"),
    ],
    from(first),
  );
  const third = await built("", [{ type: "ENV", variables: [["ONE", "$ONE$TWO"]] }, run("touch f3")], from(second));
  expect(result(third).settings).toMatchObject({ envs: { ONE: "12", TWO: "2" }, workdir: "/two", user: "root" });
  const sandbox = await sandboxOf(third);
  expect(
    (await command(sandbox.address, "ls /one/f1 /two/f2 /two/f3; cat /one/started; stat -c %U /one/started")).output,
  ).toBe("/one/f1\n/two/f2\n/two/f3\n1 \nuser");
  await agent.stop(sandbox.executionId);
  for (const { buildId } of [third, second, first]) await agent.call.deleteBuild({ params: { buildId } });
});

test("a start command that does not end well fails the build", async () => {
  const done = await built("base", [], { startCmd: "exit 7", readyCmd: "sleep 30" });
  expect(done.state.reason).toEqual({ message: "start command failed: exit status 7", step: "finalize" });
  await expect.poll(containers, SLOW).toEqual([]);
});

test("a cancelled build leaves nothing, and never begins again", async () => {
  const buildId = await start(bodyOf("base", [run("echo begun; sleep 600")]));
  await untilSaid(buildId, "[stdout]: begun");
  await agent.call.deleteBuild({ params: { buildId } });
  await expect.poll(containers, SLOW).toEqual([]);
  await expect(agent.call.startBuild({ params: { buildId }, body: bodyOf("base", []) })).rejects.toMatchObject({
    code: "conflict",
  });
  await expect(agent.call.buildState({ params: { buildId }, query: { offset: 0, limit: 1 } })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("an agent that was killed during builds fails them after its restart and removes what is left of them", async () => {
  const buildId = await start(
    bodyOf("svc/test-busybox", [run("echo one"), run("echo begun; sleep 600")], { force: true }),
  );
  await untilSaid(buildId, "[stdout]: begun");
  await agent.crash();
  await agent.launch();
  await expect
    .poll(
      async () =>
        (await agent.call.buildState({ params: { buildId }, query: { offset: 0, limit: 1 } })).reason?.message,
      SLOW,
    )
    .toMatch(/interrupted/);
  await expect.poll(containers, SLOW).toEqual([]);
  await expect.poll(async () => (await imageNames()).filter((name) => name.includes(buildId)), SLOW).toEqual([]);
  await expect.poll(dangling, SLOW).toEqual([]);
  const next = await built("svc/test-busybox", [run("echo again")]);
  expect(next.state.status).toBe("ready");
  await agent.call.deleteBuild({ params: { buildId: next.buildId } });
});
