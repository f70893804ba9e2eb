import { describe, expect, test } from "vitest";
import { targetOf } from "../../../../orchestrator/edge/target.ts";

const at = (host: string | readonly string[], ids: readonly string[] = [], ports: readonly string[] = []) =>
  targetOf({ hosts: typeof host === "string" ? [host] : host, ids, ports });
const sandbox = (sandboxId: string, port: number) => ({ is: "sandbox", sandboxId, port });

describe("on a shared host", () => {
  test.each([
    "127.0.0.1:3002",
    "localhost:3002",
    "LOCALHOST",
    "[::1]:3002",
    "10.0.0.7",
    "sandbox.example.com",
    "sandbox.x:3002",
  ])("%s routes by header", (host) => {
    expect(at(host, ["iabc"], ["8000"])).toEqual(sandbox("iabc", 8000));
    expect(at(host, ["iabc"])).toEqual(sandbox("iabc", 49_983));
    expect(at(host)).toMatchObject({ is: "none", message: "missing header" });
    expect(at(host, [], ["8000"])).toMatchObject({ is: "bad", status: 400, message: "missing header" });
  });

  test("both families of headers may name the same sandbox, but not different ones", () => {
    expect(at("localhost", ["iabc", "iabc"], ["80", "80"])).toEqual(sandbox("iabc", 80));
    expect(at("localhost", ["iabc", "ixyz"], ["80"])).toMatchObject({ is: "bad", status: 400 });
    expect(at("localhost", ["iabc"], ["80", "81"])).toMatchObject({ is: "bad", status: 400 });
  });
});

describe("on a sandbox's own host", () => {
  test.each([
    ["3000-iabc.localhost:3002", sandbox("iabc", 3000)],
    ["3000-iabc.sbx.example.com", sandbox("iabc", 3000)],
    ["3000-IABC.Sbx.Example.com.", sandbox("iabc", 3000)],
    ["49983-iabc-6532622b.sbx.example.com:443", sandbox("iabc", 49_983)],
    ["049983-iabc.localhost", sandbox("iabc", 49_983)],
    ["0-iabc.localhost", sandbox("iabc", 0)],
    ["99999-iabc.localhost", sandbox("iabc", 99_999)],
  ])("%s names the sandbox and the port", (host, expected) => {
    expect(at(host)).toEqual(expected);
  });

  test("headers do not lead to another sandbox", () => {
    expect(at("3000-iabc.localhost", ["ixyz"], ["8000"])).toEqual(sandbox("iabc", 3000));
  });

  test("headers decide when the host's label names no sandbox", () => {
    expect(at("edge:3002", ["iabc"], ["80"])).toEqual(sandbox("iabc", 80));
    expect(at("sbx.example.com", ["iabc"], ["80"])).toEqual(sandbox("iabc", 80));
    expect(at("my-machine.example.com", ["iabc"], ["80"])).toEqual(sandbox("iabc", 80));
  });

  test.each([
    "edge:3002",
    "example.com",
    "nodash.example.com",
    "80-iabc.example.com:30@other.example.com",
    "80-iabc.example.com/x",
  ])("%s alone names no sandbox", (host) => {
    expect(at(host)).toMatchObject({ is: "none", message: "Invalid host" });
  });
});

test.each(["i_abc", "../x", "i abc", "ü", "a".repeat(65), "IABC"])("%j is not a sandbox id", (id) => {
  expect(at("localhost", [id], ["80"])).toEqual({ is: "bad", status: 400, message: "Invalid sandbox ID" });
});

test.each(["http", "80a", "+80", "-1", "8 0", "0x50", "9".repeat(20)])("%j is not a port", (port) => {
  const target = at("localhost", ["iabc"], [port]);
  expect(target).toMatchObject({ is: "bad", status: 500 });
  expect(target).toHaveProperty(
    "message",
    expect.stringContaining("Unexpected error when routing request: invalid sandbox port"),
  );
});

test("an absent host, or two hosts, names no sandbox", () => {
  expect(at([])).toMatchObject({ is: "bad", status: 400, message: "Invalid host" });
  expect(at(["localhost", "localhost"], ["iabc"])).toMatchObject({ is: "bad", status: 400 });
});
