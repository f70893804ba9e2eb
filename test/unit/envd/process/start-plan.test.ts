import { constants } from "node:os";
import { describe, expect, test } from "vitest";
import { planSpawn, startError, terminalSize } from "../../../../envd/process/start-plan.ts";
import { type SpawnStep, SystemError } from "../../../../envd/system/system.ts";

const user = { name: "user", uid: 1000, gid: 1001, home: "/home/user", groups: [27] };
const limits = { oomScore: 100, openFiles: 1024 };
const request = {
  config: { cmd: "/bin/bash", args: ["-l", "-c", "true"], envs: {}, cwd: undefined },
  user,
  cwd: "/home/user",
  environment: { A: "1", B: "x=y" },
  terminal: undefined,
  stdin: false,
};

describe("the request to svc-exec", () => {
  test("has all fields of a plain command", () => {
    expect(planSpawn(request, limits)).toEqual({
      argv: ["/bin/bash", "-l", "-c", "true"],
      env: ["A=1", "B=x=y"],
      cwd: "/home/user",
      uid: 1000,
      gid: 1001,
      groups: [27],
      oomScore: 100,
      openFiles: 1024,
      terminal: undefined,
      stdin: false,
    });
  });

  test("a terminal always has an input, and a size even when none was given", () => {
    const plan = planSpawn({ ...request, terminal: { cols: 0, rows: 50 } }, limits);
    expect([plan.stdin, plan.terminal]).toEqual([true, { cols: 80, rows: 50 }]);
  });

  test.each([
    ["an empty command", { config: { ...request.config, cmd: "" } }],
    ["a zero byte in an argument", { config: { ...request.config, args: ["a\0b"] } }],
    ["a zero byte in a variable", { environment: { A: "\0" } }],
    ["a variable without a name", { environment: { "": "x" } }],
    ["an equals sign in a name", { environment: { "A=B": "x" } }],
  ])("%s is refused", (_, change) => {
    expect(() => planSpawn({ ...request, ...change }, limits)).toThrow(
      expect.objectContaining({ code: "bad_request" }),
    );
  });

  test("a size no terminal has is refused", () => {
    expect(() => terminalSize(70_000, 10)).toThrow("larger than");
  });
});

describe("why a start failed", () => {
  const failure = (errno: keyof typeof constants.errno, step: SpawnStep) =>
    startError(new SystemError(constants.errno[errno], step), "tool", "/nowhere");

  test.each([
    ["ENOENT", "exec", "not_found", "executable 'tool' not found"],
    ["EACCES", "exec", "bad_request", "executable 'tool': permission denied"],
    [
      "E2BIG",
      "exec",
      "bad_request",
      "at most 128 KiB in one argument (a whole shell command is one) or variable: write long text to a file",
    ],
    ["ENOENT", "cwd", "bad_request", "cwd '/nowhere' does not exist"],
    ["EACCES", "cwd", "bad_request", "cwd '/nowhere': permission denied"],
    ["ENOTDIR", "cwd", "bad_request", "cwd '/nowhere' is not a directory"],
    ["EAGAIN", "fork", "resource_exhausted", "(EAGAIN)"],
    ["ENOMEM", "exec", "resource_exhausted", "(ENOMEM)"],
    ["EMFILE", "resources", "resource_exhausted", "(EMFILE)"],
    ["EAGAIN", "user", "resource_exhausted", "(EAGAIN)"],
    ["EPERM", "user", "forbidden", "(EPERM)"],
    ["EIO", "terminal", "internal", "terminal failed with EIO"],
  ] as const)("%s at %s is %s", (errno, step, code, message) => {
    expect(failure(errno, step)).toMatchObject({ code, message: expect.stringContaining(message) });
  });
});
