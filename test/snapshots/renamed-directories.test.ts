/**
 * Directories that came with the template can be renamed: the overlay keeps the new name and a note of the old one in the
 * sandbox's layer. The notes hold through everything that copies the layer, and no program inside can write one.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { buildsOn, result, run } from "../support/agent/agent-builds.ts";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const sh = promisify(execFile);
const root = { user: "root" };

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
});
afterAll(() => agent.close());

const { built, sandboxOf } = buildsOn(() => agent);
const shell = async ({ address }: Started, text: string) => {
  const { output, code } = await command(address, text, root);
  expect(code, output).toBe(0);
  return output;
};
const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });
const copyOf = (snapshotId: string, memory: boolean) => agent.start({ origin: { is: "snapshot", snapshotId, memory } });

/** The content, owners and modes of the renamed directories, under the names that they have at the end. */
const SUM =
  "cd /usr/share && find moved perl-moved /usr/lib/git-moved -printf '%p %y %m %u %s %l\\n' | grep -v ' d ' | sort | sha256sum; find moved perl-moved /usr/lib/git-moved -type f | sort | xargs -d '\\n' cat | sha256sum";
/** Renames as programs do that have no way round; one directory twice, one with a renamed one in it, one across levels. */
const RENAME = `
import os
os.rename("/usr/share/doc", "/usr/share/moved")
os.rename("/usr/share/moved/bash", "/usr/share/moved/shell")
os.rename("/usr/share/perl5", "/usr/share/perl-once")
os.rename("/usr/share/perl-once", "/usr/share/perl-moved")
os.rename("/usr/lib/git-core", "/usr/lib/git-moved")
open("/usr/share/moved/new", "w").write("new")
os.remove("/usr/share/moved/shell/copyright")
`;

async function renamed(): Promise<{ one: Started; sum: string }> {
  const one = await agent.start();
  expect(
    Number(await shell(one, "find /usr/share/doc /usr/share/perl5 /usr/lib/git-core -type f | wc -l")),
  ).toBeGreaterThan(200);
  await shell(one, "rm -rf /tmp/expected && mkdir /tmp/expected && cp -a /usr/share/doc/base-files /tmp/expected/");
  await shell(one, `python3 -c '${RENAME}'`);
  expect(
    await shell(one, "diff -r /tmp/expected/base-files /usr/share/moved/base-files && ls /usr/share/doc 2>&1 || true"),
  ).toMatch(/No such file or directory/);
  return { one, sum: await shell(one, SUM) };
}

test("renamed directories of the template stay whole in pauses, copies, copies of copies and boots from the disk", async () => {
  const { one, sum } = await renamed();
  // A process that has a file of one open and stands in another.
  await background(one.address, "cd /usr/share/moved/shell && exec 3<../new && exec sleep 1000", root);
  const stands = "for p in $(pgrep -x sleep); do readlink /proc/$p/cwd; cat /proc/$p/fd/3; done";
  expect(await shell(one, stands)).toBe("/usr/share/moved/shell\nnew");

  const pause = await agent.call.pauseExecution(ask(one.executionId));
  await agent.drop();
  const origin = { is: "paused" as const, snapshotId: pause.snapshotId, memory: true };
  const again = await agent.start({ sandboxId: one.sandboxId, origin });
  expect(again.restored).toBe("memory");
  expect(await shell(again, SUM)).toBe(sum);
  expect(await shell(again, stands)).toBe("/usr/share/moved/shell\nnew");

  const first = await agent.call.checkpointExecution(ask(again.executionId));
  const copy = await copyOf(first.snapshotId, true);
  expect(copy.restored).toBe("memory");
  expect(await shell(copy, SUM)).toBe(sum);
  expect(await shell(copy, stands)).toBe("/usr/share/moved/shell\nnew");

  // The copy renames further; its own copy has that, and the source has not.
  await shell(
    copy,
    'python3 -c \'import os; os.rename("/usr/share/moved", "/usr/share/doc")\' && ls /usr/share/doc/new',
  );
  const second = await agent.call.checkpointExecution(ask(copy.executionId));
  const copied = await copyOf(second.snapshotId, false);
  expect(copied.restored).toBe("disk");
  expect(await shell(copied, "ls -d /usr/share/doc /usr/share/moved 2>/dev/null || true")).toBe("/usr/share/doc");
  await shell(copied, 'python3 -c \'import os; os.rename("/usr/share/doc", "/usr/share/moved")\'');
  expect(await shell(copied, SUM)).toBe(sum);
  const cold = await copyOf(first.snapshotId, false);
  expect(cold.restored).toBe("disk");
  expect(await shell(cold, SUM)).toBe(sum);
  expect(await shell(again, SUM)).toBe(sum);

  await Promise.all([again, copy, copied, cold].map(({ executionId }) => agent.stop(executionId)));
  for (const { snapshotId } of [first, second]) await agent.call.deleteSnapshot({ params: { snapshotId } });
});

test("a template that is built on a snapshot has the renamed directories whole", async () => {
  const { one, sum } = await renamed();
  const { snapshotId } = await agent.call.checkpointExecution(ask(one.executionId));
  const below = { templateId: "t0", buildId: randomUUID(), image: `svc/snapshot:${snapshotId}` };
  const settings = { user: "user", workdir: "/home/user", envs: {} };
  const done = await built("", [run("test -f /usr/share/moved/new && touch /built", "root")], {
    from: { is: "build", build: below, settings },
  });
  expect(result(done).image).not.toBe("");
  const sandbox = await sandboxOf(done);
  expect(await shell(sandbox, `ls /built && ${SUM}`)).toBe(`/built\n${sum}`);
  await agent.stop(one.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
});

test("a step of a build that renames a directory of its base leaves it whole in the template", async () => {
  const done = await built("base", [
    run("mv /usr/share/perl5 /usr/share/perl-moved && ls /usr/share/perl-moved | wc -l > /n", "root"),
  ]);
  const sandbox = await sandboxOf(done);
  expect(
    await shell(
      sandbox,
      'test "$(ls /usr/share/perl-moved | wc -l)" = "$(cat /n)" && test "$(cat /n)" -gt 1 && echo whole',
    ),
  ).toBe("whole");
});

test("root in a sandbox cannot write the overlay's notes, and names of attributes that look like them mean nothing", async () => {
  const one = await agent.start();
  const attempts = `
import errno, os
os.makedirs("/srv/bait", exist_ok=True)
for name in ("trusted.overlay.redirect", "trusted.overlay.opaque", "trusted.overlay.metacopy", "trusted.x"):
    for path in ("/srv/bait", "/usr/share/doc"):
        try:
            os.setxattr(path, name, b"/etc")
            print("set", name, path)
        except OSError as error:
            print(errno.errorcode[error.errno])
for path in ("/srv/bait", "/usr/share/doc"):
    try: os.setxattr(path, "user.overlay.redirect", b"/etc")
    except OSError as error: print("user", errno.errorcode[error.errno])
`;
  const said = await shell(one, `python3 -c '${attempts}'`);
  expect(said).not.toContain("set ");
  expect(said.split("\n").filter((line) => !/^(user )?E(PERM|OPNOTSUPP|ACCES)$/.test(line))).toEqual([]);
  const { snapshotId } = await agent.call.checkpointExecution(ask(one.executionId));
  const copy = await copyOf(snapshotId, false);
  expect(await shell(copy, "ls -A /srv/bait; ls /usr/share/doc | grep -c .")).toMatch(/^\d{2,}$/);
  await Promise.all([one, copy].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
});

test("a note in a layer that an image brings leads to the image's own files only", async () => {
  const work = await mkdtemp(join(tmpdir(), "svc-notes-"));
  onTestFinished(() => rm(work, { recursive: true }));
  await writeFile(join(work, "secret"), "of the host");
  const script = `
import os, subprocess
work = os.environ["WORK"]
os.chdir(work)
for name in ("low/own", "high", "upper", "work", "merged"): os.makedirs(name)
open("low/own/file", "w").write("of the image")
os.symlink("/", "low/link")
os.symlink("../..", "low/up")
notes = {"ok": "/own", "up": "/../../..", "dots": "../..", "link": "/link" + work, "rel": "up", "proc": "/proc/1/root", "long": "/" + "../" * 80, "host": work}
for name, note in notes.items():
    os.mkdir("high/" + name)
    os.setxattr("high/" + name, "trusted.overlay.redirect", note.encode())
subprocess.run(["mount", "-t", "overlay", "overlay", "-o", "xino=on,redirect_dir=on,lowerdir=high:low,upperdir=upper,workdir=work", "merged"], check=True)
for name in notes:
    found = []
    try:
        for directory, below, files in os.walk("merged/" + name, onerror=lambda error: found.append("error")):
            found += files + below
    except OSError: found.append("error")
    print(name + ":" + ",".join(sorted(found)))
`;
  const { stdout } = await sh("unshare", ["--mount", "python3", "-c", script], { env: { ...process.env, WORK: work } });
  expect(stdout.split("\n")[0]).toBe("ok:file");
  for (const line of stdout.trim().split("\n").slice(1)) expect(line).toMatch(/^\w+:(error)?$/);
});
