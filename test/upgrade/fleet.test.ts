/**
 * A fleet of an earlier revision is brought to this version, one program after the other, while `test/fleet/rolling.test.ts` looks: on
 * the way two versions of orchestrators, edges and agents work together. SVC_TEST_UPGRADE_FROM is the revision; the fleet is removed
 * at the end, whatever happens.
 */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkout, readEnvFile } from "../support/platform/platform.ts";
import { run } from "../support/platform/programs.ts";
import { type Earlier, earlier, expectNoAgent, script, UP_LIMIT_MS } from "../support/upgrade/earlier.ts";

/** One of the first with `scripts/fleet`: its database has seven steps less. */
const FROM = process.env["SVC_TEST_UPGRADE_FROM"] ?? "67c5120d";
const HOME = "/var/lib/svc-fleet";
const NODES = ["fn1", "fn2", "fn3"];
/** Seven times `up`, and what the test of a roll does between them. */
const ROLL_LIMIT_MS = 7_200_000;

const fleet: { before?: Earlier } = {};

beforeAll(async () => {
  if (existsSync(HOME)) throw new Error("there is a fleet on this machine: './scripts/fleet down' removes it");
  await expectNoAgent();
  fleet.before = await earlier(FROM);
}, UP_LIMIT_MS);

afterAll(async () => {
  const { before } = fleet;
  if (before === undefined) return;
  try {
    await script({ directory: checkout, instance: "" }, "fleet", ["down"]);
  } finally {
    await before.remove();
  }
  expect(existsSync(HOME)).toBe(false);
}, UP_LIMIT_MS);

test(
  `a fleet of ${FROM} is brought to this version, one program after the other, and its clients see only what the pages say`,
  async () => {
    const { before } = fleet;
    if (before === undefined) throw new Error("there is no earlier revision");
    process.env["SVC_LONGEST_RESTART_DELAY_S"] = "1";
    console.log(await script({ ...before, instance: "" }, "fleet", ["up"]));
    for (const node of NODES) await giveMetricsToken(`/etc/svc-${node}/config.env`);
    const args = ["node_modules/vitest/vitest.mjs", "run", "--config", "test/vitest.config.ts", "--project", "fleet"];
    const env = { ...withoutVitest(), SVC_FLEET_ENV: `${before.directory}.svc/fleet.env`, SVC_FLEET_ROLL: "up" };
    const rolling = run(process.execPath, [...args, "test/fleet/rolling.test.ts"], env, ROLL_LIMIT_MS);
    console.log(
      await rolling.catch((error: unknown) => {
        console.log((error as { stdout?: string }).stdout ?? "");
        throw error;
      }),
    );
  },
  UP_LIMIT_MS + ROLL_LIMIT_MS,
);

/** What this run has set for itself is none of the other one's. */
function withoutVitest(): NodeJS.ProcessEnv {
  const own = Object.keys(process.env).filter((name) => /^(VITEST|TEST$|NODE_ENV$)/.test(name));
  return Object.fromEntries(own.map((name) => [name, undefined]));
}

/** The invariants read the agents' metrics. Earlier fleets have no token for them; `up` takes the machine's settings over. */
async function giveMetricsToken(file: string): Promise<void> {
  const own = existsSync(file) ? readEnvFile(file) : new Map<string, string>();
  if (own.has("SVC_METRICS_TOKEN")) return;
  await appendFile(file, `\nSVC_METRICS_TOKEN="${randomBytes(24).toString("base64url")}"\n`, { mode: 0o600 });
}
