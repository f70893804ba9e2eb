/** Builds of templates that fail, are cancelled or lose their agent at any step leave nothing behind. */

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { fakeImage } from "../../../support/fakes/fake-builds.ts";
import { body, buildersForEach, built, expectNothingLeft } from "./building.ts";

const { abandon, world } = buildersForEach();

const STEPS = [
  "link",
  "pin",
  "create",
  "annotations",
  "start",
  "inspect",
  "ready",
  "init",
  "open",
  "process",
  "upload",
  "commit layer",
  "tag",
];

test.each([...STEPS, "pull"])("a build that fails at %s leaves nothing behind", async (failing) => {
  const made = await world();
  made.engine.builds.registry.set("a:latest", fakeImage("sha256:a"));
  made.engine.fail((step) => {
    if (step === failing) throw new Error(`planned failure of ${step}`);
  });
  const { status, reason } = await built(made, body({ from: { is: "image", image: "a" } }));
  expect(status).toBe("error");
  expect(reason?.message).not.toContain("planned");
  made.engine.fail(() => undefined);
  await expectNothingLeft(made);
});

test.each(["freeze", "commit", "dump", "sync", "durable"])(
  "a snapshot that fails at %s leaves a template that boots",
  async (failing) => {
    const made = await world();
    const given = body({ steps: [] });
    made.engine.fail((step) => {
      if (step === failing) throw new Error("planned");
    });
    const { status, result, entries, buildId } = await built(made, given);
    expect(status).toBe("ready");
    expect(result?.snapshot).toBeUndefined();
    expect(entries.map(({ message }) => message).join()).toContain("the start command is run in each sandbox");
    made.engine.fail(() => undefined);
    await made.builds.delete(buildId);
    await expectNothingLeft(made);
  },
);

test.each([...STEPS, "pull", "dump", "commit"])(
  "a cancellation during %s wins and leaves nothing behind",
  async (during) => {
    const made = await world();
    made.engine.builds.registry.set("a:latest", fakeImage("sha256:a"));
    const buildId = randomUUID();
    let deleting: Promise<void> | undefined;
    made.engine.fail((step) => {
      if (step === during) deleting ??= made.builds.delete(buildId);
    });
    made.builds.start(buildId, body({ from: { is: "image", image: "a" } }));
    await expect.poll(() => deleting !== undefined, { interval: 5 }).toBe(true);
    await deleting;
    expect(() => made.builds.state(buildId, 0, 1)).toThrow(/has no build/);
    made.engine.fail(() => undefined);
    await expectNothingLeft(made);
  },
);

test.each([...STEPS, "pull", "dump", "commit", "durable"])(
  "an agent that vanishes at %s: the next one fails the build and tidies up",
  async (during) => {
    const before = await world();
    before.engine.builds.registry.set("a:latest", fakeImage("sha256:a"));
    const buildId = randomUUID();
    const gone = new Promise<void>((resolve) => {
      before.engine.fail((step) => {
        if (step !== during) return undefined;
        resolve();
        return new Promise(() => undefined);
      });
    });
    before.builds.start(buildId, body({ from: { is: "image", image: "a" } }));
    await gone;
    abandon();
    const after = await world(before.engine);
    await expect.poll(() => after.builds.state(buildId, 0, 1).status, { interval: 5 }).toBe("error");
    expect(after.builds.state(buildId, 0, 1).reason?.message).toMatch(/interrupted/);
    await expectNothingLeft(after);
    expect((await built(after, body())).status).toBe("ready");
  },
);
