/** The command `svc` as `scripts/svc` starts it on the platform's machine: a day of somebody who uses it. */

import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { checkout, openPlatform } from "../../support/platform/platform.ts";

const { instance } = openPlatform();
const folder = mkdtempSync(join(tmpdir(), "svc-command-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Each test starts many processes. */
const SLOW = { timeout: 600_000 };

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** With no setting but the name of the instance. */
function start(words: readonly string[], input?: string | Buffer) {
  const env = { PATH: process.env["PATH"], HOME: folder, SVC_INSTANCE: instance };
  const child = spawn(join(checkout, "scripts/svc"), words, { env });
  const written = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (written.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (written.stderr += text));
  child.stdin.on("error", () => undefined).end(input);
  const ended = new Promise<Ended>((resolve) => void child.once("close", (code) => resolve({ code, ...written })));
  return { output: () => written.stdout, interrupt: () => void child.kill("SIGINT"), ended };
}

async function out(words: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await start(words, input).ended;
  if (code !== 0) throw new Error(`svc ${words.join(" ")} ended with ${code}: ${stderr}`);
  return stdout.trimEnd();
}

async function created(...words: readonly string[]): Promise<string> {
  const id = await out(["sandbox", "create", ...words]);
  onTestFinished(async () => void (await start(["sandbox", "kill", id]).ended));
  return id;
}

test(
  "a sandbox is created, runs programs with input and exit code, is copied to and from, logs, and is killed",
  SLOW,
  async () => {
    const id = await created("base", "--timeout", "30m", "-m", "by=svc");
    const words = ["sandbox", "exec", id, "--", "sh", "-c", "wc -c; echo failed >&2; exit 3"];
    expect(await start(words, "x".repeat(300_000)).ended).toEqual({ code: 3, stdout: "300000\n", stderr: "failed\n" });

    const tree = join(folder, "tree");
    mkdirSync(join(tree, "bin"), { recursive: true });
    writeFileSync(join(tree, "data"), Buffer.alloc(2_000_000, 3));
    writeFileSync(join(tree, "bin/run"), "#!/bin/sh\necho it ran\n");
    chmodSync(join(tree, "bin/run"), 0o755);
    await out(["sandbox", "cp", tree, `${id}:/home/user/tree`]);
    expect(await out(["sandbox", "exec", id, "--", "tree/bin/run"])).toBe("it ran");
    await out(["sandbox", "cp", `${id}:tree`, join(folder, "back")]);
    expect(readFileSync(join(folder, "back/data")).equals(readFileSync(join(tree, "data")))).toBe(true);
    expect(statSync(join(folder, "back/bin/run")).mode & 0o111).not.toBe(0);

    await expect.poll(() => out(["sandbox", "logs", id]), { timeout: 120_000 }).toContain("it ran");
    expect(await out(["sandbox", "list", "-l", "by=svc", "-o", "name"])).toBe(`sandbox/${id}`);
    expect(await out(["explain", id])).toMatch(/^Next: +it ends in /m);
    expect(await out(["sandbox", "kill", id])).toBe(`sandbox/${id} killed`);
    expect((await start(["sandbox", "exec", id, "--", "true"]).ended).code).toBe(3);
  },
);

test("a server of a sandbox is reached through a port of this machine, also after a pause", SLOW, async () => {
  const id = await created("base", "--timeout", "30m");
  const serve = "mkdir /tmp/www; echo served >/tmp/www/file; exec python3 -m http.server -d /tmp/www 8000";
  await out(["sandbox", "exec", id, "--detach", "--", "sh", "-c", serve]);
  await out(["sandbox", "pause", id]);
  const forward = start(["forward", id, "0:8000"]);
  onTestFinished(() => forward.interrupt());
  await expect.poll(forward.output, { timeout: 120_000 }).toContain(`-> ${id}:8000`);
  const [address = ""] = /http:\S+/.exec(forward.output()) ?? [];
  const read = () => fetch(`${address}/file`).then((answer) => answer.text());
  await expect.poll(read, { timeout: 120_000 }).toBe("served\n");
  forward.interrupt();
  expect((await forward.ended).code).toBe(0);
});

test("a template is built from a Dockerfile that the published reader would read in part", SLOW, async () => {
  const app = join(folder, "app");
  mkdirSync(join(app, "src"), { recursive: true });
  writeFileSync(join(app, "src/file"), "copied\n");
  const lines = ["FROM base", 'ENV WORDS="two words"', "COPY --chmod=600 src/ /srv/app/", "WORKDIR /srv/app"];
  writeFileSync(
    join(app, "Dockerfile"),
    [...lines, "RUN <<EOT", "echo $WORDS >built", "EOT", "USER root", ""].join("\n"),
  );
  const name = `svc-command-${process.pid}`;
  onTestFinished(async () => void (await start(["template", "delete", name]).ended));
  await out(["template", "build", name, app]);
  const id = await created(name, "--timeout", "30m");
  const look = "cat built file; stat -c %a file; pwd; id -un; echo $WORDS";
  expect(await out(["sandbox", "exec", id, "--", "sh", "-c", look])).toBe(
    "two words\ncopied\n600\n/srv/app\nroot\ntwo words",
  );
});
