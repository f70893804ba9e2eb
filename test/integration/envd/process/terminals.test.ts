import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Signal } from "../../../../shared/envd-rpc/gen/process_pb.js";
import { as, sharedEnvd } from "../running-envd.ts";
import { inBackground, toEnd } from "./following.ts";

const { clients } = sharedEnvd();

const size = (cols: number, rows: number) => ({ size: { cols, rows } });
const open = (script: string, pty = size(90, 33)) =>
  clients.process.start({ process: { cmd: "/bin/sh", args: ["-c", script], envs: {} }, pty }, as("user"));
const byPid = (pid: number) => ({ selector: { case: "pid" as const, value: pid } });
const type = (pid: number, text: string) =>
  clients.process.sendInput({ process: byPid(pid), input: { input: { case: "pty", value: Buffer.from(text) } } });

test("a program starts in a real terminal that has its size already and belongs to the user", async () => {
  const seen = await toEnd(
    open(
      "stty size; test -t 0 && test -t 1 && test -t 2 && echo terminal; stat -c %U:%a $(tty); echo again > $(tty); ps -o tty= -p $$",
    ),
  );
  const lines = seen.terminal.toString().split("\r\n");
  expect(lines.slice(0, 2)).toEqual(["33 90", "terminal"]);
  expect(lines[2]).toMatch(/:620$/);
  expect(lines[3]).toBe("again");
  expect(lines[4]).toMatch(/^pts\//);
});

test("a terminal without a given size has 80 columns and 24 rows", async () => {
  expect((await toEnd(open("stty size", size(0, 0)))).terminal.toString()).toBe("24 80\r\n");
});

test("a new size of the terminal reaches the program, with its signal", async () => {
  const shell = await inBackground(open("trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done"));
  await expect.poll(shell.text).toContain("ready");
  await clients.process.update({ process: byPid(shell.pid), pty: size(120, 40) });
  await expect.poll(shell.text).toContain("40 120");
  await clients.process.sendSignal({ process: byPid(shell.pid), signal: Signal.SIGKILL });
  expect((await shell.done).end?.status).toBe("signal: killed");
});

test("typed text is echoed and read; the control character ends the input", async () => {
  const cat = await inBackground(open("cat; echo ended"));
  await type(cat.pid, "hello\n");
  await expect.poll(cat.text).toBe("hello\r\nhello\r\n");
  await type(cat.pid, "\x04");
  const seen = await cat.done;
  expect([seen.terminal.toString(), seen.end?.exitCode]).toEqual(["hello\r\nhello\r\nended\r\n", 0]);
});

test("the key that erases takes back a whole character, also one of several bytes", async () => {
  const reader = await inBackground(open('echo ready; read line; printf %s "$line" | od -An -tx1'));
  await expect.poll(reader.text).toContain("ready");
  await type(reader.pid, "a中\x7f\n");
  expect((await reader.done).terminal.toString().trim().split("\r\n").at(-1)).toBe(" 61");
});

test("an interrupt from the keyboard reaches the program in the foreground", async () => {
  const shell = await inBackground(
    open("trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.05; done"),
  );
  await expect.poll(shell.text).toContain("ready");
  await type(shell.pid, "\x03");
  const seen = await shell.done;
  expect([seen.terminal.toString(), seen.end?.exitCode]).toEqual(["ready\r\n^Cinterrupted\r\n", 9]);
});

test("an interactive shell works, and its exit code comes back", async () => {
  const shell = await inBackground(
    clients.process.start(
      {
        process: { cmd: "/bin/bash", args: ["-i", "-l"], envs: { TERM: "xterm-256color", PS1: "$ " } },
        pty: size(80, 24),
      },
      as("user"),
    ),
  );
  await type(shell.pid, "echo $((6*7)); sleep 3 & jobs; exit 7\n");
  const seen = await shell.done;
  expect(seen.terminal.toString()).toMatch(/42\r\n/);
  expect(seen.terminal.toString()).not.toContain("no job control");
  expect(seen.end?.exitCode).toBe(7);
});

test("nothing that a terminal showed before its end is lost", async () => {
  for (let i = 0; i < 50; i += 1) {
    const seen = await toEnd(open(`seq 1 2000; echo last ${i}`));
    const lines = seen.terminal.toString().split("\r\n");
    expect([lines.length, lines[1_999], lines[2_000]]).toEqual([2_002, "2000", `last ${i}`]);
  }
});

test("megabytes of a terminal's output come through whole, in pieces of at most 16 KiB", async () => {
  let largest = 0;
  let total = 0;
  for await (const { event } of open("stty -opost; head -c 3000000 /dev/zero")) {
    const data = event?.event;
    if (data?.case !== "data") continue;
    largest = Math.max(largest, data.value.output.value?.length ?? 0);
    total += data.value.output.value?.length ?? 0;
  }
  expect(total).toBe(3_000_000);
  expect(largest).toBeLessThanOrEqual(16 * 1024);
});

test("a program that does not read does not hold up others", async () => {
  const deaf = await inBackground(open("stty raw -echo; echo ready; sleep 60"));
  await expect.poll(deaf.text).toContain("ready");
  const stuck = type(deaf.pid, "x".repeat(500_000)).catch((error: unknown) => error);
  expect((await toEnd(open("echo alive"))).terminal.toString()).toBe("alive\r\n");
  await clients.process.sendSignal({ process: byPid(deaf.pid), signal: Signal.SIGKILL });
  await deaf.done;
  await stuck;
});

test("a terminal's input cannot be closed, and it takes no stdin", async () => {
  const cat = await inBackground(open("cat"));
  await expect(clients.process.closeStdin({ process: byPid(cat.pid) })).rejects.toMatchObject({ code: Code.Unknown });
  await expect(
    clients.process.sendInput({
      process: byPid(cat.pid),
      input: { input: { case: "stdin", value: Buffer.from("x") } },
    }),
  ).rejects.toMatchObject({ code: Code.Internal });
  await clients.process.sendSignal({ process: byPid(cat.pid), signal: Signal.SIGTERM });
  expect((await cat.done).end?.status).toBe("signal: terminated");
});

test("only a terminal can be resized, and only to a size that terminals can have", async () => {
  const plain = await inBackground(
    clients.process.start({ process: { cmd: "sleep", args: ["60"], envs: {} } }, as("user")),
  );
  await expect(clients.process.update({ process: byPid(plain.pid), pty: size(1, 1) })).rejects.toMatchObject({
    code: Code.InvalidArgument,
  });
  await clients.process.sendSignal({ process: byPid(plain.pid), signal: Signal.SIGKILL });
  await plain.done;
  await expect(toEnd(open("true", size(70_000, 1)))).rejects.toMatchObject({ code: Code.InvalidArgument });
  await expect(clients.process.update({ process: byPid(plain.pid), pty: size(1, 1) })).rejects.toMatchObject({
    code: Code.NotFound,
  });
});
