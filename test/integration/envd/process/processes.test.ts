/** Processes that envd starts: their user and directory, their output and their input. */

import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { StreamInputRequestSchema } from "../../../../shared/envd-rpc/gen/process_pb.js";
import { as, clientsOf, sharedEnvd } from "../running-envd.ts";
import { byPid, expectNoneLeft, runOn, sh } from "./commands.ts";
import { inBackground, toEnd } from "./following.ts";

const { envd, clients } = sharedEnvd();

const run = runOn(() => clients);

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

describe.each([
  ["JSON", false],
  ["binary", true],
])("in %s", (_, binary) => {
  test("a command's output, error output and exit code come back", async () => {
    const { process } = clientsOf(envd.url, binary);
    const seen = await toEnd(
      process.start({ process: sh("echo out; echo err >&2; exit 3"), stdin: false }, as("user")),
    );
    expect([seen.stdout.toString(), seen.stderr.toString()]).toEqual(["out\n", "err\n"]);
    expect(seen.end).toMatchObject({ exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" });
  });

  test("a refusal is an error at the end of the stream", async () => {
    const { process } = clientsOf(envd.url, binary);
    await expect(toEnd(process.start({ process: sh("true") }, as("ghost")))).rejects.toMatchObject({
      code: Code.Unauthenticated,
      rawMessage: "invalid username: 'ghost'",
    });
  });
});

describe("user and directory", () => {
  test("a command runs as the user, in its groups, at home, with a small environment", async () => {
    const { stdout } = await run("id -u; id -g; id -G; pwd; env | sort | grep -v ^_=");
    expect(stdout.toString().trim().split("\n")).toEqual([
      "1000",
      "1000",
      "1000 4242",
      envd.home,
      "E2B_SANDBOX=true",
      `HOME=${envd.home}`,
      "LOGNAME=user",
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      `PWD=${envd.home}`,
      "SHELL=/bin/bash",
      "SVC_SANDBOX=true",
      "USER=user",
    ]);
  });

  test("a request without a user runs as `user`", async () => {
    expect((await toEnd(clients.process.start({ process: sh("id -u") }))).stdout.toString()).toBe("1000\n");
  });

  test("variables of one command are not set for the next", async () => {
    const config = { ...sh("echo $ONLY"), envs: { ONLY: "here" } };
    expect((await toEnd(clients.process.start({ process: config }, as("user")))).stdout.toString()).toBe("here\n");
    expect((await run("echo $ONLY")).stdout.toString()).toBe("\n");
  });

  test("a directory that is not there, or not for this user, is refused by name", async () => {
    const start = (cwd: string) => toEnd(clients.process.start({ process: { ...sh("true"), cwd } }, as("user")));
    await expect(start("/nowhere")).rejects.toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: "cwd '/nowhere' does not exist",
    });
    mkdirSync(join(envd.root, "private"), { mode: 0o700 });
    await expect(start(join(envd.root, "private"))).rejects.toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: /permission denied/,
    });
    expect(
      (await toEnd(clients.process.start({ process: { ...sh("pwd"), cwd: "~/" } }, as("user")))).stdout.toString(),
    ).toBe(`${envd.home}\n`);
  });

  test("the program is searched for along the PATH of the command", async () => {
    const bin = join(envd.home, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "greet"), "echo hello $1\n");
    chmodSync(join(bin, "greet"), 0o755);
    const config = { cmd: "greet", args: ["you"], envs: { PATH: `/nowhere:${bin}:/bin` } };
    expect((await toEnd(clients.process.start({ process: config }, as("user")))).stdout.toString()).toBe("hello you\n");
    await expect(toEnd(clients.process.start({ process: { ...config, envs: {} } }, as("user")))).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: "executable 'greet' not found",
    });
  });

  test.each([
    ["a Windows line end behind its interpreter", "#!/bin/sh\r\necho hi\r\n"],
    ["an interpreter that is missing", "#!/nowhere/python\n"],
  ])("a script with %s is not reported as missing", async (_, text) => {
    const script = join(envd.home, "script");
    writeFileSync(script, text, { mode: 0o755 });
    for (const [cmd, cwd] of [
      [script, "/"],
      ["./script", envd.home],
    ] as const)
      await expect(
        toEnd(clients.process.start({ process: { cmd, cwd, args: [], envs: {} } }, as("user"))),
      ).rejects.toMatchObject({
        code: Code.NotFound,
        rawMessage: expect.stringContaining("is there, but not the interpreter that it names"),
      });
  });

  test("a start of a file that cannot be executed fails with the reason", async () => {
    const start = (cmd: string) => toEnd(clients.process.start({ process: { cmd, args: [], envs: {} } }, as("user")));
    await expect(start("/etc/hostname-that-is-not-there")).rejects.toMatchObject({ code: Code.NotFound });
    await expect(start("/etc/passwd")).rejects.toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: /permission denied/,
    });
    await expect(start("/")).rejects.toMatchObject({ code: Code.InvalidArgument });
    await expect(start("")).rejects.toMatchObject({ code: Code.InvalidArgument, rawMessage: "the command is empty" });
  });

  test("arguments that are too long are refused, and the next command works", async () => {
    const config = { cmd: "/bin/echo", args: ["x".repeat(3_000_000)], envs: {} };
    await expect(toEnd(clients.process.start({ process: config }, as("user")))).rejects.toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: expect.stringMatching(/128 KiB in one argument.*write long text to a file/) as string,
    });
    expect((await run("echo on")).stdout.toString()).toBe("on\n");
  });

  test("a command has its own session, is killed before envd when memory is short, and keeps the container's limit of files", async () => {
    const { stdout } = await run("cat /proc/self/stat; cat /proc/self/oom_score_adj; ulimit -Sn");
    const [stat = "", score = "", files = ""] = stdout.toString().split("\n");
    const [, , , , , session] = stat.split(" ");
    expect(session).not.toBe("0");
    expect(Number(score)).toBeGreaterThanOrEqual(100);
    expect(Number(files)).toBeGreaterThan(0);
  });
});

describe("output", () => {
  test("ten megabytes of output arrive whole and in order", async () => {
    const script =
      "i=0; while [ $i -lt 160 ]; do head -c 65536 /dev/urandom; i=$((i+1)); done | tee copy; sha256sum copy >&2";
    const { stdout, stderr } = await run(script);
    expect(stdout.length).toBe(160 * 65_536);
    expect(stderr.toString().split(" ")[0]).toBe(createHash("sha256").update(stdout).digest("hex"));
  });

  test("no output is lost when a process ends at once, a hundred times", async () => {
    for (let i = 0; i < 100; i += 1)
      expect((await run(`printf ${i}; printf e${i} >&2`)).stdout.toString()).toBe(String(i));
  });

  test("no message of output cuts a character, as clients decode each on its own", async () => {
    const script =
      "yes 中文字符🚀 | head -c 300000 | head -n -1; printf '\\360\\237' >&2; sleep 0.01; printf '\\232\\200' >&2";
    const texts = { stdout: "", stderr: "" };
    for await (const { event } of clients.process.start({ process: sh(script), stdin: false }, as("user"))) {
      const output = event?.event.case === "data" ? event.event.value.output : undefined;
      if (output?.case === "stdout" || output?.case === "stderr")
        texts[output.case] += Buffer.from(output.value).toString();
    }
    expect(texts).toEqual({ stdout: "中文字符🚀\n".repeat(Math.floor(300_000 / 17)), stderr: "🚀" });
  });

  test("a command can open its standard output and error by their names in /dev", async () => {
    const seen = await run("echo a > /dev/stdout; echo b > /dev/stderr; echo c | tee /dev/stderr");
    expect([seen.stdout.toString(), seen.stderr.toString()]).toEqual(["a\nc\n", "b\nc\n"]);
  });

  test("a command that it starts as another user can open them too, and its standard input, in their direction alone", async () => {
    const against = "(exec 3</dev/stdout) 2>/dev/null && echo takes; (exec 3>/dev/stdin) 2>/dev/null && echo puts";
    const script = `echo b > /dev/stdout; echo c > /dev/stderr; head -n 1 /dev/stdin; ${against}`;
    const as33 = `echo a > /dev/stdout; exec setpriv --reuid 33 --regid 33 --clear-groups sh -c '${script}'`;
    const started = await inBackground(clients.process.start({ process: sh(as33) }, as("root")));
    const input = { input: { case: "stdin" as const, value: Buffer.from("d\n") } };
    await clients.process.sendInput({ process: byPid(started.pid), input });
    const { stdout, stderr } = await started.done;
    expect([stdout.toString(), stderr.toString()]).toEqual(["a\nb\nd\n", "c\n"]);
  });

  test("a slow reader slows the process down instead of filling memory", async () => {
    const stream = clients.process.start(
      { process: sh("head -c 30000000 /dev/zero; echo done > finished"), stdin: false },
      as("user"),
    );
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.next();
    const before = process.memoryUsage().arrayBuffers;
    // The process would finish in a moment if its slow reader did not hold it back.
    await expect(run("sleep 0.5; test -e finished")).resolves.toMatchObject({ end: { exitCode: 1 } });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000);
    let size = 0;
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      const event = next.value.event?.event;
      if (event?.case === "data") size += event.value.output.value?.length ?? 0;
    }
    expect(size).toBeGreaterThan(29_900_000);
  });

  test("a silent process is kept alive on the wire", async () => {
    const kept = async () => (await run("sleep 2.5", { headers: { "keepalive-ping-interval": "1" } })).keepalives;
    // A machine that stands still for a second leaves one out.
    await expect.poll(kept).toBe(2);
  });
});

describe("input", () => {
  test("a command that is started without stdin reads its end at once", async () => {
    expect(await run("read line")).toMatchObject({ end: { exitCode: 1 } });
    expect(await run("cat")).toMatchObject({ end: { exitCode: 0 } });
  });

  test("input is delivered in order, and empty input and a second close do no harm", async () => {
    const cat = await inBackground(clients.process.start({ process: sh("cat") }, as("user")));
    for (const text of ["one ", "", "two"])
      await clients.process.sendInput({
        process: byPid(cat.pid),
        input: { input: { case: "stdin", value: Buffer.from(text) } },
      });
    await clients.process.closeStdin({ process: byPid(cat.pid) });
    await clients.process.closeStdin({ process: byPid(cat.pid) }).catch(() => undefined);
    expect((await cat.done).stdout.toString()).toBe("one two");
  });

  test("a stream of input keeps its order", async () => {
    const cat = await inBackground(clients.process.start({ process: sh("cat") }, as("user")));
    const messages: MessageInitShape<typeof StreamInputRequestSchema>[] = [
      { event: { case: "start", value: { process: byPid(cat.pid) } } },
      ...Array.from({ length: 200 }, (_, i) => ({
        event: {
          case: "data" as const,
          value: { input: { input: { case: "stdin" as const, value: Buffer.from(`${i},`) } } },
        },
      })),
      { event: { case: "keepalive", value: {} } },
    ];
    await clients.process.streamInput(each(messages));
    await clients.process.closeStdin({ process: byPid(cat.pid) });
    expect((await cat.done).stdout.toString()).toBe(Array.from({ length: 200 }, (_, i) => `${i},`).join(""));
  });

  test("megabytes of input arrive whole", async () => {
    const count = await inBackground(clients.process.start({ process: sh("sha256sum") }, as("user")));
    const bytes = Buffer.alloc(5_000_000, "0123456789");
    await clients.process.sendInput({ process: byPid(count.pid), input: { input: { case: "stdin", value: bytes } } });
    await clients.process.closeStdin({ process: byPid(count.pid) });
    expect((await count.done).stdout.toString()).toContain(createHash("sha256").update(bytes).digest("hex"));
  });

  test("input for a command that was started without stdin is refused, also as a stream, and the refusal says how to start it", async () => {
    const sleep = await inBackground(clients.process.start({ process: sh("exec sleep 60"), stdin: false }, as("user")));
    const refusal = {
      code: Code.FailedPrecondition,
      rawMessage: `process with pid ${sleep.pid} was started without stdin: to write to it, start it with stdin: true`,
    };
    const input = { input: { case: "stdin" as const, value: Buffer.from("x") } };
    await expect(clients.process.sendInput({ process: byPid(sleep.pid), input })).rejects.toMatchObject(refusal);
    const messages: MessageInitShape<typeof StreamInputRequestSchema>[] = [
      { event: { case: "start", value: { process: byPid(sleep.pid) } } },
      { event: { case: "data", value: { input } } },
    ];
    await expect(clients.process.streamInput(each(messages))).rejects.toMatchObject(refusal);
    await clients.process.sendSignal({ process: byPid(sleep.pid), signal: 9 });
    await sleep.done;
  });

  test("input for a command whose stdin the client has closed is refused, naming the process and the close", async () => {
    const sleep = await inBackground(clients.process.start({ process: sh("exec sleep 60") }, as("user")));
    await clients.process.closeStdin({ process: byPid(sleep.pid) });
    const input = { input: { case: "stdin" as const, value: Buffer.from("x") } };
    await expect(clients.process.sendInput({ process: byPid(sleep.pid), input })).rejects.toMatchObject({
      code: Code.Internal,
      rawMessage: `error writing to stdin: process with pid ${sleep.pid}, or the client, has closed it`,
    });
    await clients.process.sendSignal({ process: byPid(sleep.pid), signal: 9 });
    await sleep.done;
  });

  test("input of the wrong kind, empty input, and input for no process is refused", async () => {
    const cat = await inBackground(clients.process.start({ process: sh("cat") }, as("user")));
    const send = (input: object, pid = cat.pid) => clients.process.sendInput({ process: byPid(pid), ...input });
    await expect(send({ input: { input: { case: "pty", value: Buffer.from("x") } } })).rejects.toMatchObject({
      code: Code.Internal,
    });
    await expect(send({})).rejects.toMatchObject({ code: Code.Unimplemented });
    await expect(send({ input: {} })).resolves.toBeDefined();
    await expect(send({ input: { input: { case: "stdin", value: Buffer.from("x") } } }, 999_999)).rejects.toMatchObject(
      { code: Code.NotFound },
    );
    await clients.process.closeStdin({ process: byPid(cat.pid) });
    await cat.done;
  });
});

test("no process, pipe or follower is left behind", async () => {
  await expectNoneLeft(clients);
});
