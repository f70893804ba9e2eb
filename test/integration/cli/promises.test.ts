/** What the texts of commands promise, against a platform that answers what each test makes it answer. */

import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { builtSvc, SLOW } from "./running-svc.ts";

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

let answer: Answer;
let asked: { readonly method: string; readonly url: string; readonly body: string }[];
let platform: Server;
beforeAll(async () => {
  platform = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => void (body += text));
    request.on("end", () => {
      asked.push({ method: request.method ?? "", url: request.url ?? "", body });
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => void platform.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  platform.close();
  platform.closeAllConnections();
});
beforeEach(() => {
  asked = [];
  answer = (_request, response) => json(response, []);
});
const svc = builtSvc(() => ({
  SVC_API_URL: `http://127.0.0.1:${(platform.address() as AddressInfo).port}`,
  SVC_API_KEY: "svc_k",
}));
const ADMIN = { env: { SVC_ADMIN_TOKEN: "of-operators" } };

function json(response: ServerResponse, value: unknown, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

const refused = (response: ServerResponse, status: number, message: string) =>
  void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ message }));

test("`svc help` and its words are help", SLOW, async () => {
  expect(await svc.out(["help", "sandbox", "create"])).toContain("Example:\n  svc sandbox create base");
  expect(await svc.out(["help"])).toContain("Commands:");
});

describe("a template", () => {
  test("without a number is kept warm as the demand asks for, with one as that says", SLOW, async () => {
    answer = (_request, response) => json(response, { names: [] });
    expect(await svc.out(["template", "warm", "app"])).toContain("what the demand asks for");
    await svc.out(["template", "warm", "app", "0"]);
    expect(asked.map(({ body }) => JSON.parse(body) as unknown)).toEqual([{ warmPool: null }, { warmPool: 0 }]);
  });

  test("is shown with every build, also those of later pages", SLOW, async () => {
    const build = (buildID: string) => ({
      buildID,
      status: "ready",
      createdAt: "2026-11-20T12:00:00Z",
      cpuCount: 2,
      memoryMB: 512,
    });
    answer = ({ url = "" }, response) => {
      if (url.includes("nextToken=second")) json(response, { builds: [build("b2")] });
      else json(response, { builds: [build("b1")] }, { "x-next-token": "second" });
    };
    const builds = JSON.parse(await svc.out(["template", "info", "app", "-o", "json"])) as {
      readonly buildID: string;
    }[];
    expect(builds.map(({ buildID }) => buildID)).toEqual(["b1", "b2"]);
  });
});

test("a list that ends at its default limit says so, and one with a limit of its own does not", SLOW, async () => {
  const entry = {
    at: "2026-11-20T12:00:00Z",
    actor: { kind: "key" },
    action: "a",
    object: {},
    result: "done",
    errorCode: null,
  };
  const items = Array.from({ length: 100 }, (_, seq) => ({ seq, ...entry }));
  answer = (_request, response) => json(response, items, { "x-next-token": "more" });
  expect((await svc.run(["audit"])).stderr).toBe("only 100 are shown: --limit shows more\n");
  expect((await svc.run(["audit", "--limit", "100"])).stderr).toBe("");
});

test("more lines of a log than the platform gives are refused, not cut", SLOW, async () => {
  const { code, stderr } = await svc.run(["sandbox", "logs", "i1", "--limit", "5000"]);
  expect(code).toBe(2);
  expect(stderr).toContain("--limit is 1 to 1000");
  expect(asked).toEqual([]);
});

test("a log is followed until its sandbox has ended", SLOW, async () => {
  const line = { timestamp: "2026-11-20T12:00:00.000Z", level: "info", message: "the last words", fields: {} };
  answer = ({ url = "" }, response) =>
    json(response, url.includes("/logs?") ? { logs: [line] } : { sandboxID: "i1", state: "ended" });
  const { code, stdout } = await svc.run(["sandbox", "logs", "i1", "-f"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "2026-11-20T12:00:00.000Z INFO  the last words\n" });
});

test("a log is followed over a restart of the platform, which is said once", SLOW, async () => {
  const line = { timestamp: "2026-11-20T12:00:00.000Z", level: "info", message: "the last words", fields: {} };
  let calls = 0;
  answer = ({ url = "" }, response) => {
    calls++;
    if (calls === 2 || calls === 3 || calls === 5) refused(response, 503, "it starts");
    else if (url.includes("/logs?")) json(response, { logs: calls === 1 ? [] : [line] });
    else json(response, { sandboxID: "i1", state: "ended" });
  };
  const { code, stdout, stderr } = await svc.run(["sandbox", "logs", "i1", "-f"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "2026-11-20T12:00:00.000Z INFO  the last words\n" });
  expect(stderr.match(/it starts: trying again/g)).toHaveLength(2);
});

test(
  "the log of a build is followed over a restart of the platform, and asked for once without -f, or where nothing answers at first",
  SLOW,
  async () => {
    let calls = 0;
    const logEntries = [{ message: "the last step" }];
    answer = (_request, response) => {
      calls++;
      if (calls === 2 || calls === 3) refused(response, 503, "it starts");
      else json(response, calls === 1 ? { status: "building", logEntries: [] } : { status: "ready", logEntries });
    };
    const words = ["template", "logs", "t1", "b1"];
    const { code, stdout, stderr } = await svc.run([...words, "-f"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "the last step\n" });
    expect(stderr.match(/it starts: trying again/g)).toHaveLength(1);
    // What fails at first may be wrong on the line.
    for (const line of [words, [...words, "-f"]]) {
      calls = 1;
      expect(await svc.run(line)).toMatchObject({ code: 1, stdout: "" });
    }
  },
);

test("no token of a new sandbox is shown", SLOW, async () => {
  const sandbox = { sandboxID: "i1", envdAccessToken: "tok-envd", trafficAccessToken: "tok-traffic" };
  answer = (_request, response) => json(response, sandbox);
  const shown = await svc.out(["sandbox", "create", "-o", "json"]);
  expect(JSON.parse(shown)).toEqual({ sandboxID: "i1" });
});

test("a file of contexts that is no TOML is named by the line, and not shown with its key", SLOW, async () => {
  mkdirSync(join(svc.folder, "broken/svc"), { recursive: true });
  writeFileSync(join(svc.folder, "broken/svc/config.toml"), "[contexts.one]\napi_key = svc_planted_key\n", {
    mode: 0o600,
  });
  const env = { SVC_API_URL: undefined, XDG_CONFIG_HOME: join(svc.folder, "broken") };
  const { code, stderr } = await svc.run(["sandbox", "list"], { env });
  expect(code).toBe(2);
  expect(stderr).toMatch(/config\.toml cannot be read: .*\(line 2\)/);
  expect(stderr).not.toContain("planted");
});

describe("status", () => {
  test("of a platform that is not ready shows its checks, also where it answers nothing else", SLOW, async () => {
    const versions = { version: "1.0.0", commit: "c0ffee", envdVersion: "0.1.0" };
    answer = ({ url = "" }, response) => {
      if (url.startsWith("/version")) json(response, versions);
      else if (!url.startsWith("/readyz")) refused(response, 503, "the database is away");
      else {
        const body = JSON.stringify({ ready: false, checks: { database: "failed: it is away" } });
        response.writeHead(503, { "content-type": "application/json" }).end(body);
      }
    };
    const { code, stdout, stderr } = await svc.run(["status"], ADMIN);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^State: +failed$/m);
    expect(stdout).toContain("database failed: it is away");
    expect(stderr).toContain("sandboxes and nodes cannot be read: the database is away");
  });

  test("of an address that is no platform says so", SLOW, async () => {
    answer = (_request, response) => void response.writeHead(404, { "content-type": "text/html" }).end("<html>");
    const { code, stderr } = await svc.run(["status"], ADMIN);
    expect(code).toBe(1);
    expect(stderr).toContain("the answer is not JSON\nlook whether the address is that of the platform's API\n");
  });
});

test("a drain that nobody follows any more goes on, and the command says how to follow it again", SLOW, async () => {
  const left = { sandboxes: 1, pausedSandboxes: 0 };
  const drain = { state: "draining", begunAt: "2026-11-20T12:00:00Z", sandboxes: [], left };
  answer = (_request, response) => json(response, drain);
  const running = svc.start(["node", "drain", "n1"], ADMIN);
  await expect.poll(running.errors, { timeout: 60_000 }).toContain("node n1: draining");
  running.interrupt();
  const { code, stderr } = await running.ended;
  expect(code).toBe(130);
  expect(stderr).toContain("the drain goes on: svc node drain n1 follows it again");
});

test("a command whose output nobody reads any more ends without a message", SLOW, async () => {
  const running = svc.start(["sandbox", "list", "--watch", "-o", "json"]);
  await expect.poll(running.output, { timeout: 60_000 }).toBe("[]\n");
  running.stopReading();
  const sandbox = { state: "running", templateID: "base", cpuCount: 2, memoryMB: 512 };
  answer = (_request, response) => json(response, [{ ...sandbox, sandboxID: `i${asked.length}` }]);
  expect(await running.ended).toMatchObject({ code: 1, stderr: "" });
});

test(
  "a list that is watched goes on after the platform was away, and has titles once there is something",
  SLOW,
  async () => {
    const replies: ((response: ServerResponse) => void)[] = [
      (response) => json(response, []),
      (response) => refused(response, 503, "it starts"),
      (response) =>
        json(response, [{ projectID: "prj_1", name: "blue", status: "active", slug: "blue", teamID: "t", limits: {} }]),
    ];
    answer = (_request, response) =>
      (asked.length > replies.length ? replies[2] : replies[asked.length - 1])?.(response);
    const running = svc.start(["project", "list", "--watch"], ADMIN);
    await expect.poll(running.output, { timeout: 60_000 }).toMatch(/^NAME +STATUS.*\nblue +active/);
    running.interrupt();
    expect(await running.ended).toMatchObject({ code: 130, stderr: "Nothing found.\nit starts: trying again\n" });
  },
);

test.each([["0"], ["-3"]])("a list of %s things is a mistake of use", SLOW, async (limit) => {
  expect((await svc.run(["sandbox", "list", "--limit", limit])).code).toBe(2);
});

test.each([["context list -o json"], ["--version"], ["--help"], ["sandbox create --help"], ["completion bash"]])(
  "a disk that does not take the output of `svc %s` is named",
  SLOW,
  async (words) => {
    const line = `exec "${process.execPath}" "${join(svc.folder, "cli/main.js")}" ${words} >/dev/full`;
    const ended = await new Promise<{ code: number | null; stderr: string }>((resolve) => {
      const child = execFile(
        "sh",
        ["-c", line],
        { env: { PATH: process.env["PATH"], HOME: svc.folder } },
        (_error, _stdout, stderr) => resolve({ code: child.exitCode, stderr }),
      );
    });
    expect(ended).toEqual({ code: 1, stderr: "error: the output cannot be written: ENOSPC\n" });
  },
);

test("no event falls between those of the past and those that are followed, and none comes twice", SLOW, async () => {
  const event = (id: string) => ({ id, timestamp: "2026-11-20T12:00:00Z", type: "sandbox.lifecycle.created" });
  let stream: ServerResponse | undefined;
  const send = (sequence: number, id: string) =>
    stream?.write(`id: ${sequence}\nevent: created\ndata: ${JSON.stringify(event(id))}\n\n`);
  answer = ({ headers }, response) => {
    if (headers.accept === "text/event-stream") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" });
      stream.write(": events\n\n");
      return;
    }
    // While the past is read, one event happens that it has, and one that it has not.
    send(2, "e2");
    send(3, "e3");
    json(response, [event("e2"), event("e1")]);
  };
  const running = svc.start(["events", "-f", "-o", "json"]);
  await expect.poll(running.output, { timeout: 60_000 }).toContain("e3");
  running.interrupt();
  const { stdout } = await running.ended;
  const ids = stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly id: string }).id);
  expect(ids).toEqual(["e1", "e2", "e3"]);
});
