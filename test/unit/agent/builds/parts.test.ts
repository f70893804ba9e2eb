import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { startOf } from "../../../../agent/builds/finish.ts";
import { ecrPassword, signedHeaders } from "../../../../agent/builds/images/ecr.ts";
import { planBuildGarbage } from "../../../../agent/builds/images/garbage.ts";
import { registryLogin } from "../../../../agent/builds/images/registry-login.ts";
import { createLines } from "../../../../agent/builds/steps/build-log.ts";
import { splitSource, targetOf } from "../../../../agent/builds/steps/copy-script.ts";
import type { BuildSettings } from "../../../../shared/agent-api/build-shapes.ts";
import { listening } from "../../../support/peers/listening.ts";

test("output is logged in whole lines, however it arrives, and a rewritten line as it ends", () => {
  const lines = createLines();
  expect(lines.push(Buffer.from("one\ntw"))).toEqual(["one"]);
  expect(lines.push(Buffer.from([0x6f, 0xc3]))).toEqual([]);
  expect(lines.push(Buffer.from([0xbc, 0x0a]))).toEqual(["twoü"]);
  expect(lines.push(Buffer.from("10 %\r20 %\r\r\n"))).toEqual(["20 %"]);
  expect(lines.push(Buffer.from("end"))).toEqual([]);
  expect(lines.rest()).toEqual(["end"]);
  expect(lines.rest()).toEqual([]);
});

test("a long line is logged in pieces, which hold all of it", () => {
  const lines = createLines();
  const text = Array.from({ length: 30_000 }, (_, index) => String(index)).join(" ");
  const pieces = [text.slice(0, 50_000), text.slice(50_000)].flatMap((part) => lines.push(Buffer.from(part)));
  pieces.push(...lines.push(Buffer.from("\nnext\n")));
  expect(pieces.at(-1)).toBe("next");
  expect(pieces.slice(0, -1).join("")).toBe(text);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(8_000);
});

test("a progress bar without a line's end is logged once, as it ends", () => {
  const lines = createLines();
  for (let percent = 0; percent <= 100; percent++)
    expect(lines.push(Buffer.from(`${"#".repeat(percent * 10)} ${percent} %\r`))).toEqual([]);
  expect(lines.rest()).toEqual([`${"#".repeat(1_000)} 100 %`]);
});

test("many carriage returns in a line cost no time", () => {
  const before = process.cpuUsage();
  expect(createLines().push(Buffer.from(`${"\r".repeat(500_000)}x\n`))).toEqual(["x"]);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(5_000);
});

const below: BuildSettings = {
  envs: { A: "1" },
  user: "app",
  workdir: "/app",
  startCmd: "base",
  readyCmd: "base ready",
};
const inherited = { startCmd: "base", startContext: { envs: { A: "1" }, user: "app", workdir: "/app" } };

test.each([
  ["nothing at all", {}, undefined, {}],
  ["its own", { startCmd: "own" }, undefined, { startCmd: "own" }],
  ["its own, and not the ready command of another", { startCmd: "own" }, below, { startCmd: "own" }],
  ["the one below, where that ran", {}, below, { ...inherited, readyCmd: "base ready" }],
  ["the one below with a ready command of its own", { readyCmd: "own" }, below, { ...inherited, readyCmd: "own" }],
  [
    "that of two below",
    {},
    { ...below, user: "x", startContext: inherited.startContext },
    { ...inherited, readyCmd: "base ready" },
  ],
  ["nothing where it is empty", { startCmd: "", readyCmd: " " }, undefined, {}],
])("a template starts %s", (_name, given, base, expected) => {
  expect(startOf(given, base)).toEqual(expected);
});

test.each([
  ["folder", "folder", undefined],
  ["./folder/", "folder", undefined],
  [".", ".", undefined],
  ["./folder/*", "folder", "folder/*"],
  ["*.txt", ".", "*.txt"],
  ["a/b?/c", "a", "a/b?/c"],
])("the source %s is taken from %s", (source, from, pattern) => {
  expect(splitSource(source)).toEqual({ from, pattern });
});

test.each([
  ["app", "/srv/app"],
  ["app/", "/srv/app/"],
  ["/app/.", "/app/"],
  ["app/./", "/srv/app/"],
  [".", "/srv/"],
  ["..", "/"],
  ["app/.x", "/srv/app/.x"],
  ["app.", "/srv/app."],
])("below /srv the destination %s is %s", (destination, target) => {
  expect(targetOf("/srv", destination)).toBe(target);
});

test("images of no build or layer are removed, and cached layers beyond their budget, least recently used first", () => {
  const layer = (key: string, usedAt: number) => ({ key, image: `svc/layer:${key}`, bytes: 10, usedAt });
  const view = {
    held: new Set<string>(),
    names: ["svc/layer:a", "svc/layer:lost", "svc/build:b1", "svc/build:b2", "svc/build:b3", "svc/from:node-b1"],
    builds: [
      { id: "b1", state: "ready" as const },
      { id: "b2", state: "error" as const },
    ],
    layers: [layer("a", 3), layer("b", 1), layer("c", 2)],
    budgetBytes: 25,
  };
  const garbage = planBuildGarbage(view);
  expect(garbage.names).toEqual(["svc/layer:lost", "svc/build:b2", "svc/build:b3", "svc/from:node-b1"]);
  expect(garbage.layers.map(({ key }) => key)).toEqual(["b"]);
  const during = planBuildGarbage({ ...view, builds: [...view.builds, { id: "b3", state: "building" }] });
  expect(during).toEqual({ names: ["svc/build:b2", "svc/from:node-b1"], layers: [] });
});

const keys = { accessKeyId: "AKID", secretAccessKey: "very-secret", region: "eu-west-1" };
const now = () => Date.UTC(2026, 0, 2, 3, 4, 5);

async function aws(status: number, answer: unknown) {
  const heard: { headers: Record<string, unknown>; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      heard.push({ headers: request.headers, body });
      response.writeHead(status).end(JSON.stringify(answer));
    });
  });
  const port = await listening(server);
  onTestFinished(() => void server.close());
  return { heard, endpoint: `http://127.0.0.1:${port}/` };
}

test("credentials of AWS become a password by one signed call", async () => {
  const token = Buffer.from("AWS:the:password").toString("base64");
  const { heard, endpoint } = await aws(200, { authorizationData: [{ authorizationToken: token }] });
  const access = {
    type: "aws" as const,
    awsAccessKeyId: "AKID",
    awsSecretAccessKey: "very-secret",
    awsRegion: "eu-west-1",
  };
  const login = await registryLogin({ endpoint, now })(access, "1.dkr.ecr", new AbortController().signal);
  expect(login).toEqual({ username: "AWS", password: "the:password", registry: "1.dkr.ecr" });
  expect(heard[0]?.headers).toMatchObject({
    "x-amz-target": "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
    "x-amz-date": "20260102T030405Z",
    authorization: expect.stringMatching(
      /^AWS4-HMAC-SHA256 Credential=AKID\/20260102\/eu-west-1\/ecr\/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=[0-9a-f]{64}$/,
    ) as unknown,
  });
  expect(JSON.stringify(heard)).not.toContain("very-secret");
  const sign = async (secretAccessKey: string) =>
    (await signedHeaders({ ...keys, secretAccessKey }, new URL("https://h/"), new Date(now())))["authorization"];
  expect(await sign("a")).not.toBe(await sign("b"));
});

test("an error about a refusal of AWS contains no secret", async () => {
  const { endpoint } = await aws(400, { message: "very-secret" });
  await expect(ecrPassword(keys, { endpoint, now }, new AbortController().signal)).rejects.toThrow(
    /^AWS refuses the credentials of the registry \(status 400\)$/,
  );
  const elsewhere = { ...keys, region: "x.example.com/" };
  await expect(ecrPassword(elsewhere, { now }, new AbortController().signal)).rejects.toThrow(/region/);
});

test("other kinds of registry credentials need no request", async () => {
  const login = registryLogin({ now });
  const { signal } = new AbortController();
  expect(await login({ type: "registry", username: "u", password: "p" }, "r", signal)).toEqual({
    username: "u",
    password: "p",
    registry: "r",
  });
  expect(await login({ type: "gcp", serviceAccountJson: "{}" }, "r", signal)).toEqual({
    username: "_json_key",
    password: "{}",
    registry: "r",
  });
});
