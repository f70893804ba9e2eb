import { connect } from "node:net";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inBackground, toEnd } from "./process/following.ts";
import { as, sharedEnvd } from "./running-envd.ts";

const { envd, clients } = sharedEnvd();

/** Checks after an attack that envd still runs commands, and that nothing of the attack is left. */
async function stillWorks(): Promise<void> {
  const config = { cmd: "/bin/sh", args: ["-c", "echo fine"], envs: {} };
  expect((await toEnd(clients.process.start({ process: config, stdin: false }, as("user")))).stdout.toString()).toBe(
    "fine\n",
  );
  expect((await clients.process.list({})).processes).toEqual([]);
}

/** Resolves to everything that a raw connection returns until it closes or, on a busy machine too, is quiet. */
function raw(bytes: string | Buffer, quietMs = 20_000): Promise<string> {
  return new Promise((resolve) => {
    let heard = "";
    const socket = connect(envd.port, "127.0.0.1", () => void socket.write(bytes));
    const done = () => {
      socket.destroy();
      resolve(heard);
    };
    socket.setTimeout(quietMs, done);
    socket.on("data", (chunk) => (heard += String(chunk)));
    socket.on("error", done);
    socket.on("close", done);
  });
}

const post = (path: string, contentType: string, body: string | Buffer) =>
  fetch(`${envd.url}${path}`, { method: "POST", headers: { "content-type": contentType }, body });

describe("requests that make no sense", () => {
  test.each([
    ["/process.Process/List", "application/json", "{", 400],
    ["/process.Process/List", "application/json", '{"unknown":1}', 200],
    ["/process.Process/SendInput", "application/json", '{"process":{"pid":-1}}', 400],
    ["/process.Process/SendInput", "application/json", '{"process":[]}', 400],
    ["/process.Process/SendInput", "application/proto", Buffer.from([0xff, 0xff, 0xff]), 500],
    ["/process.Process/List", "text/html", "{}", 415],
    ["/process.Process/Nothing", "application/json", "{}", 404],
    ["/filesystem.Filesystem/Stat", "application/json", `{"path":${"[".repeat(10_000)}`, 400],
  ])("%s with %s %j is answered with %i", async (path, contentType, body, status) => {
    expect((await post(path, contentType, body)).status).toBe(status);
  });

  test("a stream whose first frame is malformed ends with an error frame", async () => {
    for (const body of ["", "\0\0\0\0\x05{bad}", "\0\xff\xff\xff\xffxx", "\x02\0\0\0\x02{}"]) {
      const response = await post("/process.Process/Start", "application/connect+json", Buffer.from(body, "latin1"));
      expect(response.status).toBe(200);
      const frames = Buffer.from(await response.arrayBuffer());
      expect([frames[0], JSON.parse(frames.toString("utf8", 5))]).toEqual([
        2,
        { error: expect.objectContaining({ code: expect.any(String) }) },
      ]);
    }
  });

  test("endless headers are refused, and so are bytes that are no HTTP", async () => {
    expect(await raw(`GET /health HTTP/1.1\r\nX: ${"a".repeat(200_000)}`)).toMatch(/^HTTP\/1\.1 431/);
    expect(await raw("\x16\x03\x01 this is TLS or something\r\n\r\n")).toMatch(/^HTTP\/1\.1 400/);
    expect(await raw("GET  HTTP/9\r\n\r\n")).toMatch(/^HTTP\/1\.1 400/);
  });

  test("any bytes at all leave envd running", async () => {
    const start = fc.constantFrom(
      "",
      "POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nContent-Type: application/connect+json\r\nContent-Length: 64\r\n\r\n",
      "POST /files?path=/tmp/fuzz HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST /init HTTP/1.1\r\nHost: x\r\nContent-Length: 32\r\n\r\n",
    );
    await fc.assert(
      fc.asyncProperty(start, fc.uint8Array({ maxLength: 200 }), async (head, bytes) => {
        await raw(Buffer.concat([Buffer.from(head), bytes]), 15);
      }),
      { numRuns: 150 },
    );
    await stillWorks();
  });
});

test("callers that vanish in the middle leave nothing behind", async () => {
  const config = { cmd: "/bin/sh", args: ["-c", "while :; do echo loop; sleep 0.01; done"], envs: {} };
  const leaving = Array.from({ length: 20 }, async () => {
    const abort = new AbortController();
    const stream = clients.process.start(
      { process: config, tag: "abandoned" },
      { ...as("user"), signal: abort.signal },
    );
    const running = await inBackground(stream);
    abort.abort();
    await running.done.catch(() => undefined);
    await clients.process.sendSignal({ process: { selector: { case: "pid", value: running.pid } }, signal: 9 });
  });
  await Promise.all(leaving);
  await expect.poll(async () => (await clients.process.list({})).processes).toEqual([]);
  await stillWorks();
});

test("silent connections do not keep other clients out", async () => {
  const silent = Array.from({ length: 200 }, () => connect(envd.port, "127.0.0.1").on("error", () => undefined));
  await stillWorks();
  for (const socket of silent) socket.destroy();
});

test("input for a process that does not read waits until the process ends", async () => {
  const deaf = await inBackground(
    clients.process.start({ process: { cmd: "sleep", args: ["60"], envs: {} } }, as("user")),
  );
  const process = { selector: { case: "pid" as const, value: deaf.pid } };
  const waiting = clients.process.sendInput({
    process,
    input: { input: { case: "stdin", value: Buffer.alloc(1_000_000) } },
  });
  const outcome = waiting.then(
    () => "sent",
    () => "refused",
  );
  expect((await clients.process.list({})).processes).toHaveLength(1);
  await clients.process.sendSignal({ process, signal: 9 });
  expect(await outcome).toBe("refused");
  await deaf.done;
  await stillWorks();
});

test("the end of a lost helper reaches its followers, and the helper is replaced", async () => {
  const sleep = await inBackground(
    clients.process.start({ process: { cmd: "sh", args: ["-c", "echo $PPID; sleep 60"], envs: {} } }, as("user")),
  );
  await expect.poll(sleep.text).toMatch(/^\d+\n$/);
  const orphan = sleep.pid;
  globalThis.process.kill(Number(sleep.text()), "SIGKILL");
  await expect(sleep.done).rejects.toThrow("the process was lost");
  await stillWorks();
  globalThis.process.kill(-orphan, "SIGKILL");
});
