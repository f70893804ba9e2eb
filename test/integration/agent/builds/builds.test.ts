/** Builds of templates on a machine in memory: the resulting images, the cache, and refusals with their reasons. */

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { AgentConfig } from "../../../../agent/config.ts";
import type { BuildBody, BuildStep } from "../../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { readConfig } from "../../../../shared/program/config.ts";
import { fakeImage } from "../../../support/fakes/fake-builds.ts";
import { fakeEngine } from "../../../support/fakes/fake-engine.ts";
import { gateway } from "../../../support/runner/promises.ts";
import { body, buildersForEach, built, ended, expectNothingLeft, run } from "./building.ts";

const { world } = buildersForEach();

test("a build with a start command becomes an image and a snapshot, and nothing else", async () => {
  const made = await world();
  const { status, result, entries, buildId } = await built(made, body());
  expect(status).toBe("ready");
  expect(result).toMatchObject({
    image: `svc/build:${buildId}`,
    settings: { user: "user", workdir: "/home/user", envs: { PATH: "/usr/bin" }, startCmd: "serve" },
    snapshot: { memory: true },
  });
  expect(made.engine.builds.named.get(`svc/build:${buildId}`)?.history).toEqual([
    "one",
    "files",
    "script",
    "script",
    "script",
    "script",
  ]);
  expect(entries.map(({ message, step }) => `${step}: ${message}`)).toEqual(
    expect.arrayContaining([
      "1: [builder 1/2] RUN one",
      "1: [builder 1/2] [stdout]: ran one",
      "finalize: [finalize] Template is ready",
    ]) as unknown,
  );
  await expect.poll(() => made.engine.containers.size).toBe(0);
  await made.builds.delete(buildId);
  expect(made.deletedSnapshots).toEqual([result?.snapshot?.snapshotId]);
  await expectNothingLeft(made);
});

test("a template whose memory is over a quota is built without it, and its log says so", async () => {
  const made = await world();
  made.refuse = new AppError("no_space", "the project's quota is used up");
  const { status, result, entries } = await built(made, body());
  expect([status, result?.snapshot]).toEqual(["ready", undefined]);
  expect(entries.map(({ message }) => message)).toContain(
    "[finalize] Its memory is not kept (the project's quota is used up): the start command is run in each sandbox",
  );
  expect(made.stores.snapshots.all()).toEqual([]);
});

test("starting the same build again changes nothing, and a deleted one never begins", async () => {
  const made = await world();
  const buildId = randomUUID();
  made.builds.start(buildId, body());
  made.builds.start(buildId, body());
  await ended(made, buildId);
  made.builds.start(buildId, body());
  expect(made.engine.steps.filter((step) => step === "commit layer")).toHaveLength(2);
  await made.builds.delete(buildId);
  expect(() => made.builds.start(buildId, body())).toThrow(/deleted/);
  const never = randomUUID();
  await made.builds.delete(never);
  expect(() => made.builds.start(never, body())).toThrow(/deleted/);
});

test("a cached step is not run again; a forced step is, and so are all that follow", async () => {
  const made = await world();
  const plain = { startCmd: "" };
  await built(made, body(plain));
  const begun = made.engine.steps.length;
  const again = await built(made, body(plain));
  expect(made.engine.steps.slice(begun)).not.toContain("create");
  expect(again.entries.map(({ message }) => message)).toContain("CACHED [builder 2/2] COPY file x");
  const steps = body().steps.map((step, index) => ({ ...step, force: index === 1 }));
  const forced = await built(made, body({ ...plain, steps }));
  expect(forced.entries.filter(({ message }) => message.startsWith("CACHED")).map(({ step }) => step)).toEqual(["1"]);
  const all = await built(made, body({ ...plain, force: true }));
  expect(all.entries.filter(({ message }) => message.startsWith("CACHED"))).toEqual([]);
  // The operator has removed the layers from the Docker daemon.
  for (const name of made.engine.builds.named.keys())
    if (name.startsWith("svc/layer:")) made.engine.builds.named.delete(name);
  expect((await built(made, body(plain))).status).toBe("ready");
});

test("an image of a registry is pulled and provisioned once, and its own name is removed from the node", async () => {
  const made = await world();
  made.engine.builds.registry.set("example.com/a/b:1", fakeImage("sha256:foreign"));
  const given = body({ from: { is: "image", image: "example.com/a/b:1" }, startCmd: "", steps: [] });
  expect((await built(made, given)).status).toBe("ready");
  const second = await built(made, given);
  expect(second.entries.map(({ message }) => message)).toContain("CACHED [base] provisioned example.com/a/b:1");
  expect([...made.engine.builds.named.keys()].filter((name) => /example|from/.test(name))).toEqual([]);
});

test("what an image has for builds on top of it and is not done is told in the log, also when it comes from the cache", async () => {
  const made = await world();
  const more = { triggers: ["COPY . /app", "RUN npm ci"], shell: ["/bin/ash", "-c"] };
  made.engine.builds.registry.set("example.com/a/b:1", fakeImage("sha256:foreign", more));
  const given = body({ from: { is: "image", image: "example.com/a/b:1" }, startCmd: "", steps: [] });
  for (const { entries } of [await built(made, given), await built(made, given)])
    expect(entries.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual([
      "[base] The image's ONBUILD instructions are not run, make them steps of this build: COPY . /app; RUN npm ci",
      "[base] The image's SHELL is not used, commands run in bash -l -c: /bin/ash -c",
    ]);
});

test("a pulled image that is larger than an upload may be fails its build with both sizes and leaves nothing behind", async () => {
  const made = await world();
  const bytes = 20 * 1024 ** 3 + 1;
  made.engine.builds.registry.set("example.com/a/huge:1", fakeImage("sha256:huge", { bytes }));
  const { reason } = await built(made, body({ from: { is: "image", image: "example.com/a/huge:1" }, steps: [] }));
  expect(reason?.message).toMatch(
    `example.com/a/huge:1 has ${bytes} bytes, and an image of a template has ${bytes - 1} at most`,
  );
  expect([...made.engine.builds.named.keys()].filter((name) => /example|from/.test(name))).toEqual([]);
  await expectNothingLeft(made);
});

test("an upload that is no image fails with that reason and leaves nothing behind", async () => {
  const made = await world();
  const from = { is: "archive" as const, filesHash: "a".repeat(64) };
  const { reason } = await built(made, body({ from, steps: [] }));
  expect(reason).toEqual({ message: "the archive is not an OCI layout: it has no index.json", step: "base" });
  await expectNothingLeft(made);
});

test("an image of this machine is used only where its operator allows it, and never by its id", async () => {
  const made = await world();
  made.engine.builds.named.set("local/a:1", fakeImage("sha256:a", { labels: { "svc.image": "base" } }));
  made.engine.builds.named.set("other/a:1", fakeImage("sha256:b"));
  const from = (image: string) => body({ from: { is: "image", image }, startCmd: "", steps: [] });
  expect((await built(made, from("local/a:1"))).status).toBe("ready");
  expect((await built(made, from("other/a:1"))).status).toBe("error");
  expect((await built(made, from("svc/build:x"))).reason?.message).toMatch(/belongs to the platform/);
});

test("an image of this machine is used only if the operator lists it", async () => {
  const { buildLocalImages } = readConfig(AgentConfig, {
    SVC_ORCHESTRATOR_URL: "http://127.0.0.1:3000",
    SVC_NODE_ID: "n",
    SVC_NODE_TOKEN: "t".repeat(32),
    SVC_ORCHESTRATOR_TOKEN: "t".repeat(32),
  });
  const made = await world(fakeEngine(), buildLocalImages);
  made.engine.builds.named.set("local/a:1", fakeImage("sha256:a", { labels: { "svc.image": "base" } }));
  const from = (image: string) => body({ from: { is: "image", image }, startCmd: "", steps: [] });
  const { status, reason } = await built(made, from("local/a:1"));
  // The answer is the same as for an image that does not exist.
  expect({ status, reason }).toEqual({ status: "error", reason: (await built(made, from("local/b:1"))).reason });
  expect((await built(made, from("base"))).status).toBe("ready");
});

test("a build that takes too long fails with that reason, and so does one of an agent that stops", async () => {
  const made = await world();
  const slow = await built(made, body({ steps: [run("hang")], limitMs: 3_000 }));
  expect(slow.reason).toEqual({ message: "the build took longer than its limit of 3 s", step: "1" });
  const buildId = randomUUID();
  made.builds.start(buildId, body({ steps: [run("hang")] }));
  await expect.poll(() => made.engine.steps.filter((step) => step === "process").length, { interval: 5 }).toBe(2);
  await made.builds.drain();
  expect(made.builds.state(buildId, 0, 1).reason?.message).toMatch(/shutting down/);
  await expectNothingLeft(made);
});

test("a build beyond the node's limit waits until another one ends", async () => {
  const made = await world();
  const ids = [randomUUID(), randomUUID(), randomUUID()];
  for (const id of ids) made.builds.start(id, body({ steps: [run("hang")], startCmd: "" }));
  await expect.poll(() => made.engine.containers.size, { interval: 5 }).toBe(2);
  await made.builds.delete(ids[0] ?? "");
  await expect.poll(() => made.engine.steps.filter((step) => step === "create").length, { interval: 5 }).toBe(3);
});

test.each<[string, Partial<BuildBody>, RegExp, string]>([
  ["a failing command", { steps: [run("exit 4")] }, /^failed to run command 'exit 4': exit status 4$/, "1"],
  [
    "an unknown user",
    { steps: [{ ...run("whoami"), user: "nobody-here" } as BuildStep] },
    /^failed to run command 'whoami': command failed: unauthenticated: invalid username: 'nobody-here'$/,
    "1",
  ],
  [
    "a failing start command",
    { steps: [], startCmd: "exit 9", readyCmd: "exit 1" },
    /^start command failed: exit status 9$/,
    "finalize",
  ],
  [
    "an image that is not to be had",
    { from: { is: "image", image: "no such" } },
    /is not the name of an image/,
    "base",
  ],
])("a build with %s fails with the error and the number of its step", async (_name, more, message, step) => {
  const made = await world();
  const { reason } = await built(made, body(more));
  expect(reason?.message).toMatch(message);
  expect(reason?.step).toBe(step);
  await expectNothingLeft(made);
});

test("cached layers can be dropped while no build is under way: templates stay, and the next build runs their steps again", async () => {
  const made = await world();
  const { buildId } = await built(made, body({ startCmd: "" }));
  const layers = () => made.cache.layers().map(({ inUse }) => inUse);
  const names = () => [...made.engine.builds.named.keys()];
  expect(layers()).toEqual([false, false]);
  const gate = gateway();
  made.engine.fail((step) => (step === "commit layer" ? gate.promise : undefined));
  const second = randomUUID();
  made.builds.start(second, body({ startCmd: "", force: true }));
  expect(layers()).toEqual([true, true]);
  for (const { id } of made.cache.layers()) await made.cache.drop(id);
  expect(layers()).toHaveLength(2);
  gate.resolve();
  expect((await ended(made, second)).status).toBe("ready");
  for (const { id } of made.cache.layers()) await made.cache.drop(id);
  expect([layers(), names().filter((name) => name.startsWith("svc/layer:"))]).toEqual([[], []]);
  expect(names()).toEqual(expect.arrayContaining([`svc/build:${buildId}`, `svc/build:${second}`]));
  const again = await built(made, body({ startCmd: "" }));
  expect(again.status).toBe("ready");
  expect(again.entries.map(({ message }) => message)).toContain("[builder 1/2] [stdout]: ran one");
});
