/** Templates of foreign images: one of Debian, and one with nothing but busybox. */

import { randomUUID } from "node:crypto";
import { type Sandbox, Template } from "e2b";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { run } from "../../support/platform/programs.ts";
import { buildTemplate, contextOf, fresh } from "../../support/platform/templates.ts";
import { ownSandbox, text } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const BUSYBOX = "svc/test-busybox:latest";

beforeAll(async () => {
  const there = await run("docker", ["image", "ls", "-q", BUSYBOX]);
  if (there === "") throw new Error(`${BUSYBOX} is missing: scripts/host/test/busybox-image makes it`);
});

/** Makes an image from the platform's own one by removing the platform's additions. */
async function debian(): Promise<string> {
  const id = randomUUID().slice(0, 8);
  const [image, container] = [`svc/test-debian:${id}`, `svc-test-debian-${id}`];
  const bare = "userdel -r user; rm -f /etc/sudoers.d/user; useradd -u 1000 other";
  await run("docker", ["run", "--name", container, "--network=none", "--entrypoint=/bin/sh", "svc/base", "-c", bare]);
  onTestFinished(async () => void (await run("docker", ["rmi", "-f", image])));
  await run("docker", ["commit", "--change", "LABEL svc.image=made", container, image]);
  await run("docker", ["rm", container]);
  return image;
}

async function typed(sandbox: Sandbox, keys: string): Promise<() => string> {
  let heard = "";
  const onData = (data: Uint8Array) => void (heard += text(data));
  const { pid } = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: 300_000, onData });
  await sandbox.pty.sendInput(pid, Buffer.from(keys));
  return () => heard;
}

test.each([
  ["Debian", debian, "Debian"],
  ["busybox", async () => BUSYBOX, "BusyBox"],
])("a Dockerfile on %s becomes sandboxes with commands, files and terminals", async (_of, image, says) => {
  const fileContextPath = await contextOf({ "app/run.sh": "echo made for $WHOM" });
  const dockerfile = [
    `FROM ${await image()}`,
    "ENV WHOM=everyone",
    "COPY app /opt/app/",
    "WORKDIR /opt/app",
    "RUN id -un > by.txt && (head -n 1 /etc/os-release; ls --help 2>&1) | head -n 3 > about.txt",
    "USER user",
    "RUN echo more > ~/more.txt",
  ].join("\n");
  const name = fresh("image");
  await buildTemplate(platform, name, Template({ fileContextPath }).fromDockerfile(dockerfile));
  const sandbox = await ownSandbox({ template: name });

  const { stdout } = await sandbox.commands.run(
    "pwd; id -un; sh run.sh; cat by.txt ~/more.txt; sudo -n id -un || true",
  );
  expect(stdout.split("\n").slice(0, 5)).toEqual(["/opt/app", "user", "made for everyone", "root", "more"]);
  expect(await sandbox.files.read("about.txt")).toContain(says);
  const failed = await sandbox.commands.run("exit 3").catch((error: unknown) => error);
  expect(failed).toMatchObject({ exitCode: 3 });
  const background = await sandbox.commands.run("cat; echo end", { background: true, stdin: true });
  await sandbox.commands.sendStdin(background.pid, "in\n");
  await expect.poll(() => background.stdout).toBe("in\n");
  expect(await background.kill()).toBe(true);

  await sandbox.files.write("/home/user/deep/down/file.txt", "content");
  await sandbox.files.rename("/home/user/deep/down/file.txt", "/home/user/deep/renamed.txt");
  expect((await sandbox.files.list("/home/user/deep")).map((entry) => entry.name).toSorted()).toEqual([
    "down",
    "renamed.txt",
  ]);
  expect(await sandbox.files.read("/home/user/deep/renamed.txt")).toBe("content");
  expect(await sandbox.files.getInfo("/home/user/deep/renamed.txt")).toMatchObject({ owner: "user", size: 7 });
  await sandbox.files.remove("/home/user/deep");
  expect(await sandbox.files.exists("/home/user/deep")).toBe(false);

  const heard = await typed(sandbox, "stty size; tty; echo pi''ng\n");
  await expect.poll(heard).toMatch(/24 80\r\n\/dev\/pts\/\d+\r\nping\r\n/);
});
