/** The steps of a build on the real Docker daemon, with the odd inputs of real Dockerfiles: each as Docker does it. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildsOn, messages, result, run, type Step } from "../../support/agent/agent-builds.ts";
import { type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { command } from "../../support/sandbox/envd-commands.ts";

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_BUILD_LOCAL_IMAGES: "*" });
});
afterAll(() => agent.close());

const { built, copy, sandboxOf } = buildsOn(() => agent);
const env = (...variables: [string, string][]): Step => ({ type: "ENV", variables });
const user = (name: string): Step => ({ type: "USER", user: name });
const workdir = (path: string): Step => ({ type: "WORKDIR", path });
const file = (name: string, content = name, mode = 0o644) => ({ name, content, mode });
const folder = (name: string) => ({ name, type: "directory" as const });
const link = (name: string, linkname: string) => ({ name, type: "symlink" as const, linkname });

/** Builds the steps and answers what `look` prints as root in a sandbox of the template. */
async function outcome(image: string, steps: readonly Step[], look: string): Promise<string> {
  const done = await built(image, steps);
  result(done);
  const sandbox = await sandboxOf(done);
  const { output } = await command(sandbox.address, look, { user: "root" });
  await agent.stop(sandbox.executionId);
  await agent.call.deleteBuild({ params: { buildId: done.buildId } });
  return output;
}

async function failure(image: string, steps: readonly Step[]): Promise<string> {
  const done = await built(image, steps);
  await agent.call.deleteBuild({ params: { buildId: done.buildId } });
  return `${done.state.reason?.step ?? ""}: ${done.state.reason?.message ?? "it is ready"}`;
}

const root = { user: "root" };

describe.each(["base", "svc/test-busybox"])("from %s", (image) => {
  test("COPY replaces links, pipes and running programs, and opens none of them", async () => {
    const prepare = run(
      [
        "mkdir -p /srv; echo kept >/srv/target; ln -s /srv/target /srv/link; ln -s /nowhere/at/all /srv/lost; mkfifo /srv/pipe",
        "ln -s loop /srv/loop; cp /bin/sleep /srv/program; ln /srv/target /srv/hard",
      ].join("\n"),
      "root",
    );
    const names = ["link", "lost", "pipe", "loop", "program", "hard"];
    const tree = [folder("t"), ...names.map((name) => file(`t/${name}`, `new ${name}\n`))];
    const steps = [
      prepare,
      await copy([file("link", "first\n")], "link", "/srv/link", root),
      await copy(tree, "t", "/srv", { user: "root", mode: "0755" }),
    ];
    const look =
      "cat /srv/target; cd /srv; for name in link lost pipe loop program hard; do stat -c '%F %a' $name; cat $name; done";
    expect(await outcome(image, steps, look)).toBe(
      ["kept", ...names.flatMap((name) => ["regular file 755", `new ${name}`])].join("\n"),
    );
  });

  test("COPY goes through links to directories at any depth, and replaces what is none by a directory", async () => {
    const prepare = run(
      "mkdir -p /srv/real/deep /srv/else; ln -s real /srv/first; ln -s ../../else /srv/real/deep/second; echo x >/srv/file; ln -s /nowhere /srv/lost",
      "root",
    );
    const tree = [
      ...["t", "t/first", "t/first/deep", "t/first/deep/second", "t/file", "t/lost"].map(folder),
      file("t/first/a"),
      file("t/first/deep/second/b"),
      file("t/file/c"),
      file("t/lost/d"),
    ];
    const look =
      "cd /srv; readlink first; readlink real/deep/second; find real else file lost -type f | sort; stat -c %F file lost";
    expect(await outcome(image, [prepare, await copy(tree, "t", "/srv", root)], look)).toBe(
      "real\n../../else\nelse/b\nfile/c\nlost/d\nreal/a\ndirectory\ndirectory".replaceAll(" ", "\n"),
    );
    const bin = await copy([folder("r"), folder("r/bin"), file("r/bin/x-tool", "hi", 0o755)], "r", "/", root);
    expect(await outcome(image, [bin], "cat /bin/x-tool; test -x /bin/sh && echo whole")).toBe("hiwhole");
    const over = await copy([folder("t"), file("t/etc")], "t", "/", root);
    expect(await failure(image, [over])).toContain("'/etc' is a directory, and the source has a file of that name");
  });

  test("COPY gives files the owner and the group that it names, by name, number and variable", async () => {
    const groups = run("echo s2:x:3002: >>/etc/group; echo app:x:3001:3001::/srv/h:/bin/sh >>/etc/passwd", "root");
    const cases: [string, string][] = [
      ["user:s2", "1000 3002"],
      ["user:7", "1000 7"],
      ["1000", "1000 1000"],
      ["4000", "4000 4000"],
      ["4000:s2", "4000 3002"],
      ["app", "3001 3001"],
      ["$WHO:$GROUP", "3001 3002"],
    ];
    const steps = [
      groups,
      env(["WHO", "app"], ["GROUP", "s2"]),
      ...(await Promise.all(
        cases.map(([owner], index) => copy([file("f")], "f", `/srv/new${index}/f`, { user: owner })),
      )),
    ];
    const all = cases.map((_, index) => `/srv/new${index} /srv/new${index}/f`).join(" ");
    expect(await outcome(image, steps, `stat -c '%u %g' ${all}`)).toBe(
      cases.flatMap(([, ids]) => [ids, ids]).join("\n"),
    );
    const unknown = await copy([file("f")], "f", "/srv/f", { user: "user:nowhere" });
    expect(await failure(image, [unknown])).toMatch(/^1: .*invalid group: 'nowhere'/);
    const stranger = await copy([file("f")], "f", "/srv/f", { user: "stranger" });
    expect(await failure(image, [stranger])).toMatch(/^1: .*invalid username: 'stranger'/);
  });

  test("a step's processes end with it, and the step is over when its command is", async () => {
    const pid = "/proc/$(cat /srv/pid)";
    const steps = [
      // The first holds the output, the others have left their session and their parent.
      run("mkdir -p /srv; sleep 1000 & echo $! >/srv/pid; (setsid sleep 1000 >/dev/null 2>&1 &)", "root"),
      run(`test ! -e ${pid} && ! grep -l sleep /proc/[0-9]*/comm && echo none >/srv/seen`, "root"),
      run("head -c 20000000 /dev/urandom >/srv/big; nohup sleep 1000 >/dev/null 2>&1 & exit 0", "root"),
      run("! grep -l sleep /proc/[0-9]*/comm && echo none >>/srv/seen", "root"),
    ];
    expect(await outcome(image, steps, "cat /srv/seen")).toBe("none\nnone");
  });

  test("the end of a step leaves the platform's own helper alive, which tells of the end of each process", async () => {
    // Of every process with that program: the id and the start time.
    const helper = "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" != svc-exec ] || cut -d ' ' -f 1,22 $p/stat; done";
    const steps = [
      run(`mkdir -p /srv; { ${helper}; } >/srv/first; test -s /srv/first`, "root"),
      run(`{ ${helper}; } >/srv/second`, "root"),
    ];
    expect(await outcome(image, steps, "cmp /srv/first /srv/second && echo same")).toBe("same");
  });

  test("USER has a group by number and by name, also in sandboxes of the template", async () => {
    const steps = [
      run("echo s2:x:3002: >>/etc/group", "root"),
      user("6001:6001"),
      run("id -u >/tmp/a; id -g >>/tmp/a"),
      user("user:s2"),
      run("id -u >/tmp/b; id -g >>/tmp/b; id -G >>/tmp/b"),
    ];
    const done = await built(image, steps);
    expect(result(done).settings.user).toBe("user:s2");
    const sandbox = await sandboxOf(done);
    expect((await command(sandbox.address, "cat /tmp/a /tmp/b", { user: "root" })).output).toBe(
      "6001\n6001\n1000\n3002\n3002",
    );
    expect((await command(sandbox.address, "id -u; id -g", { user: "6001:3002" })).output).toBe("6001\n3002");
    await agent.stop(sandbox.executionId);
    await agent.call.deleteBuild({ params: { buildId: done.buildId } });
    expect(await failure(image, [user("user:nowhere")])).toMatch(/^1: .*invalid group: 'nowhere'/);
  });

  test("$HOME is that of the image's passwd, also from the cache and in a template on top", async () => {
    const steps = [
      run("echo app:x:3001:3001::/srv/h:/bin/sh >>/etc/passwd; mkdir -p /srv/h", "root"),
      user("app"),
      env(["WHERE", "$HOME/x"]),
      workdir("$HOME/${USER}"),
    ];
    const first = await built(image, steps);
    expect(result(first).settings).toMatchObject({ envs: { WHERE: "/srv/h/x" }, workdir: "/srv/h/app" });
    const cached = await built(image, [...steps, env(["AGAIN", "$HOME"])]);
    expect(result(cached).settings.envs).toMatchObject({ WHERE: "/srv/h/x", AGAIN: "/srv/h" });
    expect(messages(cached).filter((line) => line.startsWith("CACHED [builder"))).toHaveLength(4);
    for (const { buildId } of [first, cached]) await agent.call.deleteBuild({ params: { buildId } });
  });

  test("WORKDIR belongs to the user with its new parents, and is made again when a step has removed it", async () => {
    const steps = [
      user("1000"),
      workdir("/w/x"),
      run("touch y; cd /; rm -rf /w/x"),
      run("pwd >z"),
      run("rm -rf /w/x", "root"),
    ];
    expect(await outcome(image, steps, "stat -c %u /w /w/x; ls -A /w/x")).toBe("1000\n1000");
    expect(await failure(image, [workdir("/etc/passwd/x")])).toMatch(/^1: .*'\/etc\/passwd' is not a directory/);
  });
});

test("a build copies thousands of directories anew and onto themselves", async () => {
  const names = Array.from({ length: 50 }, (_, a) => [
    `t/${a}`,
    ...Array.from({ length: 50 }, (_, b) => `t/${a}/${b}`),
  ]);
  const tree = [folder("t"), ...names.flat().map(folder), file("t/0/0/f")];
  const timed = async (steps: readonly Step[]) => {
    const done = await built("base", steps);
    result(done);
    const took = messages(done).flatMap((line) => /took ([\d.]+) s/.exec(line)?.[1] ?? []);
    await agent.call.deleteBuild({ params: { buildId: done.buildId } });
    return took.map(Number);
  };
  const step = await copy(tree, "t", "/srv/t", root);
  const again = await copy(tree, "t", "/srv/t", { user: "root", mode: "0755" });
  const [anew = 0, onto = 0] = await timed([step, again]);
  console.log(`2 550 directories: anew ${anew} s, onto themselves ${onto} s`);
  expect([anew, onto].every((seconds) => seconds > 0)).toBe(true);
});

test("links in the source stay links, hard links stay hard, and setuid stays with root", async () => {
  const tree = [
    folder("t"),
    file("t/su", "x", 0o4755),
    link("t/soft", "su"),
    { name: "t/hard", type: "link" as const, linkname: "t/su" },
    link("t/dirlink", "/etc"),
  ];
  const steps = [await copy(tree, "t", "/srv/t", { user: "root:user" }), await copy(tree, "t", "/dev/shm/t", root)];
  const look = "cd /srv/t; readlink soft dirlink; stat -c '%a %h %U:%G' su; ls /etc/su 2>&1 | grep -c cannot";
  expect(await outcome("base", steps, look)).toBe("su\n/etc\n4755 2 root:user\n1");
});
