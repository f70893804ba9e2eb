/** Commands that run to their end: output, exit, user, directory and environment. */

import { createHash } from "node:crypto";
import { AuthenticationError, CommandExitError, InvalidArgumentError, TimeoutError } from "e2b";
import { describe, expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";

openPlatform();
const sandbox = sharedSandbox({ envs: { GLOBAL: "of the sandbox" } });

describe("output", () => {
  test("stdout and stderr are kept apart", async () => {
    const result = await sandbox().commands.run("echo out; echo err >&2");
    expect(result).toMatchObject({ stdout: "out\n", stderr: "err\n", exitCode: 0 });
    expect(result.error).toBeUndefined();
  });

  test("each stream of output arrives in order, while the command runs", async () => {
    const seen: string[] = [];
    const left = ["1", "2", "3", "4", "5"];
    const hear = (data: string) => {
      seen.push(...lines(data));
      const [turn = ""] = left;
      if (!seen.includes(`out${turn}`) || !seen.includes(`err${turn}`)) return;
      left.shift();
      // The command goes on only now.
      sandbox()
        .files.write(`/tmp/turns/${turn}`, "")
        .catch(() => undefined);
    };
    const wait = "until [ -e /tmp/turns/$i ]; do sleep 0.05; done";
    await sandbox().commands.run(`for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; ${wait}; done`, {
      onStdout: hear,
      onStderr: hear,
      timeoutMs: 120_000,
    });
    expect(seen.filter((line) => line.startsWith("out"))).toEqual(["out1", "out2", "out3", "out4", "out5"]);
    expect(seen.filter((line) => line.startsWith("err"))).toEqual(["err1", "err2", "err3", "err4", "err5"]);
    expect(seen.indexOf("out2")).toBeGreaterThan(seen.indexOf("err1"));
  });

  test("ten megabytes of output arrive whole", async () => {
    const result = await sandbox().commands.run(
      "head -c 7500000 /dev/urandom | base64 -w 0 | tee /tmp/sent | cat; sha256sum < /tmp/sent >&2",
    );
    expect(result.stdout).toHaveLength(10_000_000);
    expect(createHash("sha256").update(result.stdout).digest("hex")).toBe(result.stderr.slice(0, 64));
  });

  test("a hundred thousand lines of output keep their order", async () => {
    const { stdout } = await sandbox().commands.run("seq 1 100000");
    expect(stdout).toBe(`${Array.from({ length: 100_000 }, (_, index) => index + 1).join("\n")}\n`);
  });

  test("characters of several bytes are not torn apart", async () => {
    const { stdout } = await sandbox().commands.run(`python3 -c 'print("aé漢🦊" * 40000, end="")'`);
    expect(stdout).toBe("aé漢🦊".repeat(40_000));
  });

  test("output of a command that ends at once is never lost", async () => {
    for (let round = 0; round < 30; round++) {
      const { stdout, stderr } = await sandbox().commands.run(`printf ${round}; printf ${round} >&2`);
      expect([stdout, stderr]).toEqual([String(round), String(round)]);
    }
  });

  test("a command without output returns empty texts", async () => {
    expect(await sandbox().commands.run("true")).toMatchObject({ stdout: "", stderr: "", exitCode: 0 });
  });

  test("thirty commands at once do not mix their output", async () => {
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, index) => sandbox().commands.run(`for i in 1 2 3; do echo ${index}; done`)),
    );
    expect(results.map((result) => result.stdout)).toEqual(
      Array.from({ length: 30 }, (_, index) => `${index}\n`.repeat(3)),
    );
  });
});

describe("exit", () => {
  test.each([1, 2, 42, 127, 255])("exit code %i is an error that has the code and the output", async (code) => {
    const error = await refusal(sandbox().commands.run(`echo before; echo why >&2; exit ${code}`));
    expect(error).toBeInstanceOf(CommandExitError);
    expect(error).toMatchObject({ exitCode: code, stdout: "before\n", stderr: "why\n", error: `exit status ${code}` });
  });

  test("the death of a command by a signal is code -1 and names the signal", async () => {
    expect(await refusal(sandbox().commands.run("kill -KILL $$"))).toMatchObject({
      exitCode: -1,
      error: "signal: killed",
    });
    expect(await refusal(sandbox().commands.run("kill -TERM $$"))).toMatchObject({
      exitCode: -1,
      error: "signal: terminated",
    });
  });

  test("an unknown program fails with bash's exit code 127", async () => {
    expect(await refusal(sandbox().commands.run("no-such-program"))).toMatchObject({ exitCode: 127 });
  });

  test("a command that hands its output to the background ends when the output does", async () => {
    const { stdout } = await sandbox().commands.run("(sleep 0.3; echo late) & echo early");
    expect(stdout).toBe("early\nlate\n");
  });

  test("a detached background process does not hold the command", async () => {
    // One that held it would hold it beyond its time-out of a minute.
    expect((await sandbox().commands.run("sleep 3001 > /dev/null 2>&1 & echo on")).stdout).toBe("on\n");
  });
});

describe("who, where, with what", () => {
  test("the default user is user, in its home, with a login shell's path", async () => {
    const { stdout } = await sandbox().commands.run('whoami; pwd; echo "$HOME $USER $LOGNAME"; id -u; command -v ls');
    expect(lines(stdout).slice(0, 4)).toEqual(["user", "/home/user", "/home/user user user", "1000"]);
    expect(lines(stdout)[4]).toMatch(/\/bin\/ls$/);
  });

  test("a command may run as root", async () => {
    const { stdout } = await sandbox().commands.run('whoami; pwd; echo "$HOME"; id -u', { user: "root" });
    expect(lines(stdout)).toEqual(["root", "/root", "/root", "0"]);
  });

  test("a command has the groups of its user, and none of root's", async () => {
    const { stdout } = await sandbox().commands.run("id -G");
    expect(lines(stdout)[0]?.split(" ")).not.toContain("0");
  });

  test("an unknown user is refused by name", async () => {
    const error = await refusal(sandbox().commands.run("whoami", { user: "root123" }));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error.message).toContain("invalid username: 'root123'");
  });

  test("sudo works without a password, and drops what was set for the command", async () => {
    const { stdout } = await sandbox().commands.run("sudo whoami; sudo sh -c 'echo \"[$ONLY]\"'", {
      envs: { ONLY: "mine" },
    });
    expect(lines(stdout)).toEqual(["root", "[]"]);
  });

  test("the working directory of a command may be absolute, relative to home, or home itself", async () => {
    expect((await sandbox().commands.run("pwd", { cwd: "/tmp" })).stdout).toBe("/tmp\n");
    await sandbox().files.makeDir("deep/er");
    expect((await sandbox().commands.run("pwd", { cwd: "deep/er" })).stdout).toBe("/home/user/deep/er\n");
    expect((await sandbox().commands.run("pwd", { cwd: "~" })).stdout).toBe("/home/user\n");
  });

  test("a working directory that does not exist is an argument error that names it", async () => {
    const error = await refusal(sandbox().commands.run("pwd", { cwd: "/no/such" }));
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect(error.message).toContain("cwd '/no/such' does not exist");
  });

  test("a command gets the sandbox's variables and its own, and its own win", async () => {
    const { stdout } = await sandbox().commands.run('echo "$GLOBAL"; echo "$ONLY"', { envs: { ONLY: "ü = x\ny" } });
    expect(stdout).toBe("of the sandbox\nü = x\ny\n");
    const { stdout: over } = await sandbox().commands.run('echo "$GLOBAL"', { envs: { GLOBAL: "mine" } });
    expect(over).toBe("mine\n");
  });

  test("variables of one command are not set for the next", async () => {
    await sandbox().commands.run("true", { envs: { LEAK: "yes" } });
    expect((await sandbox().commands.run('echo "[$LEAK]"')).stdout).toBe("[]\n");
  });

  test("nothing of the platform is in the environment of a command", async () => {
    const { stdout } = await sandbox().commands.run("env");
    expect(stdout).not.toMatch(/CONTROL|TOKEN|LD_LIBRARY_PATH|NODE_/);
  });

  test("stdin is at its end unless the caller opens it", async () => {
    expect((await sandbox().commands.run("cat; echo done")).stdout).toBe("done\n");
  });
});

describe("limits", () => {
  test("a command over its time is killed, and the error says so", async () => {
    const started = Date.now();
    const error = await refusal(sandbox().commands.run("echo $$ > /tmp/slow.pid; sleep 600", { timeoutMs: 1000 }));
    expect(error).toBeInstanceOf(TimeoutError);
    console.log(`a command with a time-out of one second ended after ${Date.now() - started} ms`);
    await expect
      .poll(
        async () =>
          (await sandbox().commands.run("kill -0 $(cat /tmp/slow.pid) 2>/dev/null && echo alive || echo gone")).stdout,
      )
      .toBe("gone\n");
  });

  test("a time-out of 0 turns the time-out off", async () => {
    expect((await sandbox().commands.run("sleep 1; echo done", { timeoutMs: 0 })).stdout).toBe("done\n");
  });

  test("very long commands and many variables are fine", async () => {
    const long = "x".repeat(100_000);
    expect((await sandbox().commands.run(`printf ${long}`)).stdout).toBe(long);
    const envs = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`V_${index}`, String(index)]));
    expect((await sandbox().commands.run('echo "$V_0 $V_499"', { envs })).stdout).toBe("0 499\n");
  });
});

function lines(data: string): readonly string[] {
  return data.split("\n").filter((line) => line !== "");
}
