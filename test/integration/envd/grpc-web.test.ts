/** Calls over gRPC-Web, as browsers and a public Go client make them. */

import { type Client, Code, createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { Filesystem, FileType } from "../../../shared/envd-rpc/gen/filesystem_pb.js";
import { Process } from "../../../shared/envd-rpc/gen/process_pb.js";
import { bytesOfText, GRPC_WEB_FORMS, grpcWebTransport } from "../../support/sandbox/grpc-web.ts";
import { byPid, expectNoneLeft, sh } from "./process/commands.ts";
import { toEnd } from "./process/following.ts";
import { as, runEnvd, sharedEnvd } from "./running-envd.ts";

const { envd, clients } = sharedEnvd();

describe.each(GRPC_WEB_FORMS)("a client that sends %s", (form) => {
  let process: Client<typeof Process>;
  let filesystem: Client<typeof Filesystem>;
  beforeAll(() => {
    const transport = grpcWebTransport(envd.url, form);
    process = createClient(Process, transport);
    filesystem = createClient(Filesystem, transport);
  });

  test("gets the answer of a call, and its error with code and message", async () => {
    const made = await filesystem.makeDir({ path: `made/${form}` }, as("user"));
    expect(made.entry).toMatchObject({ path: `${envd.home}/made/${form}`, type: FileType.DIRECTORY, owner: "user" });
    await expect(filesystem.stat({ path: "nothing-ü" }, as("user"))).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: `path not found: '${envd.home}/nothing-ü'`,
    });
  });

  test("reads a command's output to its end, every byte of it", async () => {
    const seen = await toEnd(
      process.start({ process: sh("head -c 300000 /dev/zero; echo err >&2; exit 3"), stdin: false }, as("user")),
    );
    expect([seen.stdout.length, seen.stderr.toString(), seen.end?.exitCode]).toEqual([300_000, "err\n", 3]);
  });

  test("gets the failure of a stream that could not start", async () => {
    const stream = process.start({ process: { cmd: "/no/such", args: [], envs: {} } }, as("user"));
    await expect(toEnd(stream)).rejects.toMatchObject({ code: Code.NotFound });
  });

  test("types into a terminal, by single calls and by a stream of input", async () => {
    const terminal = process.start({ process: { cmd: "/bin/sh", args: ["-i"], envs: {} }, pty: {} }, as("user"));
    const events = terminal[Symbol.asyncIterator]();
    const first = (await events.next()).value as { event?: { event: { value: { pid: number } } } };
    const selector = byPid(first.event?.event.value.pid ?? 0);
    const typed = (text: string) => ({ input: { case: "pty" as const, value: Buffer.from(text) } });
    await process.sendInput({ process: selector, input: typed("echo one$((1+1))\n") });
    async function* input() {
      yield { event: { case: "start" as const, value: { process: selector } } };
      yield { event: { case: "data" as const, value: { input: typed("echo three$((3+1)); exit 7\n") } } };
    }
    await process.streamInput(input());
    const seen = await toEnd({ [Symbol.asyncIterator]: () => events });
    expect(seen.terminal.toString()).toContain("one2");
    expect(seen.terminal.toString()).toContain("three4");
    expect(seen.end?.exitCode).toBe(7);
  });

  test("leaves a stream early, and the command runs on without it", async () => {
    const leaving = new AbortController();
    const command = { process: sh("sleep 60"), stdin: false };
    const stream = process.start(command, { ...as("user"), signal: leaving.signal });
    const first = await stream[Symbol.asyncIterator]().next();
    expect(first.done).toBe(false);
    leaving.abort();
    const { processes } = await clients.process.list({});
    expect(processes.map(({ config }) => config?.args)).toEqual([["-c", "sleep 60"]]);
    await process.sendSignal({ process: byPid(processes[0]?.pid ?? 0), signal: 9 });
    await expectNoneLeft(clients);
  });

  test("ends a stream at the deadline that it names, with the process", async () => {
    const stream = process.start({ process: sh("sleep 60"), stdin: false }, { ...as("user"), timeoutMs: 300 });
    await expect(toEnd(stream)).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expectNoneLeft(clients);
  });

  test("without the token reads why it is refused", async () => {
    const own = await runEnvd();
    try {
      await fetch(`${own.url}/init`, { method: "POST", body: JSON.stringify({ accessToken: "secret" }) });
      const call = (headers: Record<string, string>) =>
        createClient(Filesystem, grpcWebTransport(own.url, form, headers)).stat({ path: "/" });
      await expect(call({})).rejects.toMatchObject({
        code: Code.Unauthenticated,
        rawMessage: expect.stringContaining("please provide a valid access token") as string,
      });
      await expect(call({ "x-access-token": "wrong" })).rejects.toMatchObject({ code: Code.Unauthenticated });
      expect((await call({ "x-access-token": "secret" })).entry?.path).toBe("/");
    } finally {
      await own.stop();
    }
  });
});

const post = (type: string, body: string | Buffer, headers: Record<string, string> = {}) =>
  fetch(`${envd.url}/filesystem.Filesystem/Stat`, {
    method: "POST",
    headers: { "content-type": type, ...headers },
    body,
  });
const message = Buffer.concat([Buffer.from([0, 0, 0, 0, 15]), Buffer.from('{"path":"/tmp"}')]);

test("an answer over gRPC-Web has the form that the client accepts, also where it sends the other one", async () => {
  const text = { accept: "application/grpc-web-text" };
  const asText = await post("application/grpc-web+json", message, text);
  expect(asText.headers.get("content-type")).toBe("application/grpc-web-text+json");
  expect(bytesOfText(await asText.text()).toString()).toContain("grpc-status: 0");
  const binary = { accept: "application/grpc-web+json" };
  const asBytes = await post("application/grpc-web-text+json", message.toString("base64"), binary);
  expect(asBytes.headers.get("content-type")).toBe("application/grpc-web+json");
  expect(await asBytes.text()).toContain("grpc-status: 0");
});

test.each(["!!!!", "AAAA=AAA", "AAAAA"])("text that is not base64 (%s) is the client's mistake", async (body) => {
  const answer = bytesOfText(await (await post("application/grpc-web-text", body)).text()).toString();
  expect(answer).toContain(`grpc-status: ${Code.InvalidArgument}`);
});

test("scripts of other origins may read the status of a call", async () => {
  const answer = await post("application/grpc-web+json", message, { origin: "https://elsewhere.example" });
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  const exposed = answer.headers.get("access-control-expose-headers")?.toLowerCase().split(", ");
  expect(exposed).toEqual(expect.arrayContaining(["grpc-status", "grpc-message", "grpc-status-details-bin"]));
  await answer.text();
});

test("gRPC itself is refused in words", async () => {
  const answer = await post("application/grpc", message);
  expect(answer.status).toBe(415);
  expect(((await answer.json()) as { message: string }).message).toContain("gRPC itself needs HTTP/2");
});

test.each([
  ["application/json", Buffer.from('{"path":"/tmp/\u00e9"}', "latin1")],
  ["application/json", Buffer.from('{"path":"/tmp/\\ud800"}')],
  ["application/proto", Buffer.from([10, 6, 0x2f, 0x74, 0x6d, 0x70, 0x2f, 0xe9])],
])("a name that is not UTF-8 is refused in %s, where the protocol has text alone", async (type, body) => {
  const answer = await post(type, body);
  expect(answer.ok).toBe(false);
  expect(await answer.text()).toMatch(/utf-?8/i);
});
