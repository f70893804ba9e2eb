/**
 * A platform of an earlier revision, with running and paused sandboxes, a snapshot, a volume, a secret and keys, is brought to this
 * version by `./scripts/up`: all of it is there, and what ran has run on. Then the way back, as far as docs/operating/start.md goes.
 * SVC_TEST_UPGRADE_FROM is the revision, SVC_INSTANCE the instance's name; it is removed at the end, whatever happens.
 */

import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { checkout, openPlatform, type Platform } from "../support/platform/platform.ts";
import { untilReady } from "../support/platform/programs.ts";
import { type Earlier, earlier, expectNoAgent, script, UP_LIMIT_MS } from "../support/upgrade/earlier.ts";
import {
  expectListed,
  expectResumed,
  expectRunOn,
  expectStored,
  type Kept,
  makeKept,
  removeKept,
} from "../support/upgrade/kept.ts";

/** The last one with a single orchestrator and a single node. */
const FROM = process.env["SVC_TEST_UPGRADE_FROM"] ?? "5cc49a85";
const instance = process.env["SVC_INSTANCE"] ?? "upgr";
const present = { directory: checkout, instance };
const SETTINGS = `/etc/svc-${instance}`;
const LIMIT_MS = 900_000;

const machine: { is: "as found" | "earlier" | "present"; before?: Earlier; platform?: Platform; kept?: Kept } = {
  is: "as found",
};

/** What there is when the earlier version has come up; throws otherwise. */
function upgraded(): { readonly platform: Platform; readonly kept: Kept; readonly before: Earlier } {
  const { before, platform, kept } = machine;
  if (before === undefined || platform === undefined || kept === undefined || machine.is !== "present")
    throw new Error(`the platform of ${FROM} was not brought to this version`);
  return { before, platform, kept };
}

beforeAll(async () => {
  if (instance === "") throw new Error("the default instance is a user's: SVC_INSTANCE must name one for tests");
  if (existsSync(SETTINGS))
    throw new Error(`${SETTINGS} exists: 'SVC_INSTANCE=${instance} ./scripts/down --purge' removes that platform`);
  await expectNoAgent();
  machine.before = await earlier(FROM);
}, LIMIT_MS);

afterAll(async () => {
  const { before } = machine;
  // Nothing was begun.
  if (before === undefined) return;
  try {
    await script(present, "down", ["--purge"]);
  } finally {
    await before.remove();
  }
  expect(existsSync(SETTINGS)).toBe(false);
}, UP_LIMIT_MS);

test(
  `the platform of ${FROM} comes up, and gets running and paused sandboxes, a snapshot, a volume, a secret and keys`,
  async () => {
    const { before } = machine;
    if (before === undefined) throw new Error("there is no earlier revision");
    process.env["SVC_INSTANCE"] = instance;
    console.log(await script({ ...before, instance }, "up"));
    const platform = openPlatform(instance, before.directory);
    await untilReady(platform);
    machine.kept = await makeKept(platform);
    machine.platform = platform;
    machine.is = "earlier";
  },
  UP_LIMIT_MS + LIMIT_MS,
);

test(
  "up of this version leaves each sandbox as it was, and those that ran have run on",
  async () => {
    const { platform, kept } = machine;
    if (platform === undefined || kept === undefined) throw new Error("there is nothing to bring to this version");
    console.log(await script(present, "up"));
    machine.is = "present";
    await untilReady(platform);
    await expectListed(platform, kept);
    await expectRunOn(platform, kept);
  },
  UP_LIMIT_MS + LIMIT_MS,
);

test(
  "snapshots, volumes, secrets and keys from before the upgrade do what they did",
  async () => {
    const { platform, kept } = upgraded();
    await expectStored(platform, kept);
  },
  LIMIT_MS,
);

test(
  "paused sandboxes from before the upgrade resume with their memory, or from their disk, and can be paused again",
  async () => {
    const { platform, kept } = upgraded();
    await expectResumed(platform, kept);
    await expectListed(platform, kept);
  },
  LIMIT_MS,
);

test(
  "up of the earlier version serves what it knows the schema of, and is refused otherwise; up of this version then has everything",
  async () => {
    const { platform, kept, before } = upgraded();
    machine.is = "earlier";
    const goesOn = await before.has("newerSteps", "orchestrator/store/schema");
    if (goesOn) {
      console.log(await script({ ...before, instance }, "up"));
      await untilReady(platform);
      await expectListed(platform, kept);
      await expectRunOn(platform, kept);
    } else {
      await expect(script({ ...before, instance }, "up")).rejects.toThrow("orchestrator did not get ready");
    }
    console.log(await script(present, "up"));
    machine.is = "present";
    await untilReady(platform);
    await expectListed(platform, kept);
    await expectRunOn(platform, kept);
    await expectStored(platform, kept);
    await expectResumed(platform, kept);
  },
  2 * UP_LIMIT_MS + LIMIT_MS,
);

test(
  "nothing is left over on the machine when all of it is removed",
  async () => {
    const { platform, kept } = upgraded();
    await removeKept(kept);
    await expectNoProblems(platform, 180_000);
  },
  LIMIT_MS,
);
