/** A RUN that adds a user whose name or number the platform's own user has. */

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { BuildContainer, Script } from "../../../../agent/builds/steps/build-container.ts";
import { doStep, type StepDeps } from "../../../../agent/builds/steps/steps.ts";

let work = "";
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-taken-"));
});
afterEach(() => rm(work, { recursive: true, force: true }));

/** Why the RUN fails that writes `said`, in an image with this `passwd`. */
async function reason(said: string, passwd = "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/bash\n") {
  await writeFile(join(work, "passwd"), passwd);
  await writeFile(join(work, "group"), "root:x:0:\nuser:x:1001:\n");
  const run = async ({ args: [option = "", script = "", ...more] }: Script) => {
    const inside = script.replaceAll("/etc/", `${work}/`);
    const code = await promisify(execFile)("/bin/sh", [option, inside, ...more]).then(
      () => 0,
      (error: { code: number }) => error.code,
    );
    return { exitCode: code, status: `exit status ${code}` };
  };
  const container: Pick<BuildContainer, "run" | "runAlone" | "isFull"> = {
    run,
    runAlone: (_script, onOutput) => {
      onOutput("stderr", Buffer.from(said));
      return Promise.resolve({ exitCode: 4, status: "exit status 4" });
    },
    isFull: () => Promise.resolve(false),
  };
  const deps: Pick<StepDeps, "log" | "signal"> = {
    log: { output: () => ({ push: () => undefined, end: () => undefined }) } as never,
    signal: new AbortController().signal,
  };
  const before = { user: "root", workdir: "/", envs: {} };
  const step = { type: "RUN", number: 3, force: false, command: "add" } as const;
  return doStep({ step, before }, container as BuildContainer, "", deps as StepDeps).then(
    () => "",
    (error: unknown) => (error as Error).message,
  );
}

test.each([
  "useradd: UID 1000 is not unique\n",
  "adduser: The UID 1000 is already in use.\n",
  "adduser: uid '1000' in use\n",
  "groupadd: GID '1001' already exists\n",
  "addgroup: The GID `1001' is already in use.\n",
])("a RUN that fails with %j says that the platform's user has the number", async (said) => {
  const number = /\d+/.exec(said)?.[0];
  expect(await reason(`${"x".repeat(10_000)}\n${said}`)).toContain(
    `failed to run command 'add': exit status 4; the platform adds the user 'user' with the number ${number} to every image: write USER user`,
  );
});

test.each([
  "useradd: user 'user' already exists\n",
  "useradd: group user exists - if you want to add this user to that group, use -g.\n",
  "adduser: The user `user' already exists.\n",
  "adduser: user 'user' in use\n",
  "addgroup: group 'user' in use\n",
])("a RUN that fails with %j says that every image gets that user", async (said) => {
  expect(await reason(said)).toBe(
    "failed to run command 'add': exit status 4; the platform adds the user 'user', with the home /home/user, to every image: " +
      "leave out the command that adds it",
  );
});

test.each([
  [
    "useradd: UID 1000 is not unique\n",
    "ubuntu:x:1000:1000::/home/ubuntu:/bin/bash\nuser:x:1001:1001::/home/user:/bin/bash\n",
  ],
  ["useradd: user 'app' already exists\n", undefined],
  ["useradd: user 'user1' already exists\n", undefined],
  ["make: *** [all] Error 4\n", undefined],
])("a RUN that fails with %j for another user, or another reason, says no more", async (said, passwd) => {
  expect(await reason(said, passwd)).toBe("failed to run command 'add': exit status 4");
});
