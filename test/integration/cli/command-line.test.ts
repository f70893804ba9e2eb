/** The command line without a platform: help, misspellings, exit codes, contexts, where settings come from. */

import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { VERSION } from "../../../shared/version.ts";
import { freePort } from "../../support/peers/listening.ts";
import { builtSvc, SLOW } from "./running-svc.ts";

const svc = builtSvc(() => ({}));

/** What the last request to the platform of this file had in its headers, and what it is answered. */
const asked: { key: string | undefined; url: string | undefined } = { key: undefined, url: undefined };
let answer: { status: number; body: string };
let platform: Server;
let url: string;

beforeAll(async () => {
  platform = createServer((request, response) => {
    asked.key = request.headers["x-api-key"] as string | undefined;
    asked.url = request.url;
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
  });
  await new Promise<void>((resolve) => void platform.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(platform.address() as AddressInfo).port}`;
});
afterAll(() => {
  platform.close();
  platform.closeAllConnections();
});
beforeEach(() => {
  answer = { status: 200, body: "[]" };
  asked.key = undefined;
});

test("help and version go to standard output with exit code 0", SLOW, async () => {
  expect(await svc.run(["--version"])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: "" });
  const help = await svc.run(["sandbox", "create", "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  expect(help.stdout).toContain("Example:\n  svc sandbox create base");
  expect((await svc.run([])).code).toBe(0);
  const group = await svc.run(["sandbox", "--help"]);
  expect(group.code).toBe(0);
  for (const words of [
    ["help", "sandbox"],
    ["sandbox", "help"],
  ])
    expect(await svc.run(words)).toEqual(group);
});

test.each([
  [["sandbox", "creat"], "Did you mean create?"],
  [["sandbx"], "Did you mean sandbox?"],
  [["sandbox", "list", "--selectr", "a=b"], "Did you mean --selector?"],
  [["sandbox", "info"], "missing required argument"],
  // Of a group, or a word of other tools: letters alone say `rotate` for `create`.
  [["create"], "Did you mean svc sandbox create, svc snapshot create,"],
  [["exec", "i1", "--", "ls"], "Did you mean svc sandbox exec?"],
  [["ps"], "Did you mean svc sandbox list,"],
  [["login"], "Did you mean svc auth login?"],
  [["sandbox", "rm", "i1"], "Did you mean svc sandbox kill?"],
  [["node", "ls"], "Did you mean svc node list?"],
  [["auth", "logout"], "Did you mean svc context remove?"],
  [["sandbox", "list", "--json"], "Did you mean --output json?"],
])("svc %j is a mistake of use: %s", async (words, message) => {
  const { code, stdout, stderr } = await svc.run(words);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
});

test("a mistake is shown with its control characters escaped", SLOW, async () => {
  const { code, stderr } = await svc.run(["sandbox", "\u001b[2Jlist"]);
  expect(code).toBe(2);
  expect(stderr).toContain("\\x1b[2Jlist");
});

test("without a platform a command says how to name one", SLOW, async () => {
  const { code, stderr } = await svc.run(["sandbox", "list"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/SVC_API_URL.*svc context add.*scripts\/up/);
});

describe("the exit code", () => {
  const env = () => ({ SVC_API_URL: url, SVC_API_KEY: "svc_k" });
  test.each([
    [400, 1],
    [401, 4],
    [403, 4],
    [404, 3],
    [409, 5],
    [504, 124],
    [500, 1],
  ])("of an answer %i is %i, with the message of the API", async (status, code) => {
    answer = { status, body: JSON.stringify({ code: status, message: "why \u001b[31mit is so" }) };
    const ended = await svc.run(["sandbox", "info", "i1"], { env: env() });
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toContain("error: why \\x1b[31mit is so");
  });

  test("of a platform that is not there is 1, with its address", SLOW, async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await svc.run(["sandbox", "list"], { env: { ...env(), SVC_API_URL: nobody } });
    expect(code).toBe(1);
    expect(stderr).toContain(`cannot reach ${nobody}: ECONNREFUSED`);
  });

  test("of a command without a key is 4", SLOW, async () => {
    expect((await svc.run(["sandbox", "list"], { env: { SVC_API_URL: url } })).code).toBe(4);
    const admin = await svc.run(["node", "list"], { env: env() });
    expect(admin.code).toBe(4);
    expect(admin.stderr).toMatch(/SVC_ADMIN_TOKEN.*as root.*--token-file/);
  });
});

describe("settings", () => {
  test("come from SVC_ variables, and from E2B_ ones where those are not there", SLOW, async () => {
    const env = { E2B_API_URL: url, E2B_API_KEY: "e2b_second", SVC_API_KEY: undefined };
    await svc.out(["sandbox", "list"], { env });
    expect(asked.key).toBe("e2b_second");
    await svc.out(["sandbox", "list"], { env: { ...env, SVC_API_KEY: "svc_first" } });
    expect(asked.key).toBe("svc_first");
  });

  test("come from what scripts/up left in the checkout, and a stored key goes to no other address", SLOW, async () => {
    const checkout = join(svc.folder, "checkout");
    mkdirSync(join(checkout, ".svc"), { recursive: true });
    writeFileSync(join(checkout, ".svc/env"), `SVC_API_URL=${url}\nSVC_API_KEY=svc_stored\nexport SVC_API_URL\n`);
    await svc.out(["sandbox", "list"], { env: { SVC_CHECKOUT: checkout } });
    expect(asked.key).toBe("svc_stored");
    const elsewhere = await svc.run(["sandbox", "list"], { env: { SVC_CHECKOUT: checkout, SVC_API_URL: url } });
    expect(elsewhere.code).toBe(4);
  });

  test("of the Debian package are beside the machine's, and not below its own directories", SLOW, async () => {
    const checkout = join(svc.folder, "package");
    mkdirSync(join(checkout, ".svc-none"), { recursive: true });
    writeFileSync(join(checkout, ".svc-none/env"), `SVC_API_URL=${url}\nSVC_API_KEY=svc_stored\n`);
    const env = { SVC_CHECKOUT: checkout, SVC_INSTANCE: "none" };
    await svc.out(["sandbox", "list"], { env });
    writeFileSync(join(checkout, ".package"), "1.0\n");
    expect((await svc.run(["sandbox", "list"], { env })).code).toBe(2);
  });

  test("of E2B_DOMAIN are the hosts below it", SLOW, async () => {
    const env = { E2B_DOMAIN: "nowhere.invalid", SVC_API_KEY: "svc_k" };
    const { stderr } = await svc.run(["sandbox", "list"], { env });
    expect(stderr).toContain("cannot reach https://api.nowhere.invalid");
  });
});

describe("contexts", () => {
  const add = (name: string, key: string) =>
    svc.run(["context", "add", name, "--api-url", url, "--sandbox-url", url], { input: `${key}\n` });

  test("are stored for the user alone, used, listed without keys, and forgotten", SLOW, async () => {
    expect((await add("one", "svc_one")).code).toBe(0);
    expect((await add("two", "svc_two")).code).toBe(0);
    const file = join(svc.folder, ".config/svc/config.toml");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).toContain('api_key = "svc_one"');

    await svc.out(["sandbox", "list"]);
    expect(asked.key).toBe("svc_two");
    await svc.out(["context", "use", "one"]);
    await svc.out(["sandbox", "list"]);
    expect(asked.key).toBe("svc_one");
    const env = { E2B_API_KEY: "svc_environment", SVC_API_URL: url };
    const beside = await svc.run(["context", "use", "one"], { env });
    expect(beside.stderr).toContain(
      "the environment counts more: unset SVC_API_URL, E2B_API_KEY, or say --context one",
    );
    await svc.out(["sandbox", "list", "--context", "two"], { env: { SVC_API_KEY: "svc_environment" } });
    expect(asked.key).toBe("svc_two");

    const list = await svc.out(["context", "list"]);
    expect(list).toMatch(/^\*\s+one /m);
    expect(list).not.toContain("svc_one");
    await svc.out(["context", "remove", "one"]);
    expect((await svc.run(["context", "use", "one"])).code).toBe(3);
    expect((await svc.run(["sandbox", "list", "--context", "one"])).code).toBe(2);
  });

  test("of an address that is none are not stored", SLOW, async () => {
    for (const words of ["context add odd --api-url 10.0.0.1:3000", "auth login --api-url --sandbox-url"]) {
      const { code, stderr } = await svc.run(words.split(" "), { input: "svc_odd\n" });
      expect([code, stderr]).toEqual([2, expect.stringContaining("is no address of the API")]);
    }
    expect(await svc.out(["context", "list"])).not.toContain("odd");
  });

  test("that others can read are refused", SLOW, async () => {
    expect((await add("open", "svc_open")).code).toBe(0);
    const file = join(svc.folder, ".config/svc/config.toml");
    chmodSync(file, 0o644);
    const { code, stderr } = await svc.run(["sandbox", "list"]);
    chmodSync(file, 0o600);
    expect(code).toBe(2);
    expect(stderr).toContain("chmod 600");
  });
});

test("-o json is JSON, and an empty list has no lines of data", SLOW, async () => {
  const env = { SVC_API_URL: url, SVC_API_KEY: "svc_k" };
  expect(await svc.run(["sandbox", "list"], { env })).toMatchObject({ code: 0, stdout: "" });
  expect(await svc.out(["sandbox", "list", "-o", "json"], { env })).toBe("[]");
});

test("completion is printed for each shell, and names what may follow", SLOW, async () => {
  for (const shell of ["bash", "zsh", "fish"])
    expect(await svc.out(["completion", shell])).toContain("svc complete --");
  expect((await svc.run(["completion", "tcsh"])).code).toBe(2);
  expect(await svc.out(["complete", "--", "sandbox", "re"])).toBe("resume\nrewind");
});
