/**
 * A restore of a hostile sandbox touches no file of the host, although the sandbox holds files open and replaces directories
 * by links. The test dumps and restores hostile sandboxes with both layers that keep CRIU inside, with either layer alone,
 * and without any, which shows that the test would notice. `SVC_ESCAPE_SEEDS=200` tries more sandboxes.
 */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EscapeHost, escapeHost, type Layers } from "../support/escape/escape-host.ts";
import { escapeRun, type Outcome } from "../support/escape/escape-run.ts";
import { seedsOf } from "../support/escape/hostile-words.ts";

const run = promisify(execFile);
const SEEDS = seedsOf(process.env["SVC_ESCAPE_SEEDS"], process.env["SVC_ESCAPE_FIRST"]);
// Another run may use the same machine.
const NETWORK = `svc-escape-${process.pid}`;
const LIMIT_MS = SEEDS.length * 240_000;

describe("a hostile sandbox that is dumped and restored", () => {
  let host: EscapeHost;
  beforeAll(async () => {
    await run("ip", ["netns", "add", NETWORK]);
    host = await escapeHost();
  });
  afterAll(async () => {
    await host.close();
    await run("ip", ["netns", "delete", NETWORK]);
  });

  const outcomes = async (layers: Layers): Promise<readonly Outcome[]> => {
    const all: Outcome[] = [];
    for (const seed of SEEDS) {
      const one = await escapeRun(host, seed, layers, `/run/netns/${NETWORK}`);
      if (process.env["SVC_ESCAPE_SEEDS"] !== undefined)
        console.info(`${seed} ${one.did.replaceAll("\n", "; ")} -> ${one.ended} ${one.reason} ${one.touched.join()}`);
      all.push(one);
    }
    const count = (ended: Outcome["ended"]) => all.filter((one) => one.ended === ended).length;
    const counts = (["restored", "restore refused", "dump refused"] as const).map(
      (ended) => `${ended}: ${count(ended)}`,
    );
    console.info(`${JSON.stringify(layers)} ${counts.join(", ")}`);
    return all;
  };

  test.each<Layers>([
    { paths: true, confined: true },
    { paths: true, confined: false },
    { paths: false, confined: true },
  ])(
    "leaves the host alone with %o",
    async (layers) => {
      const all = await outcomes(layers);
      expect(all.filter((one) => one.touched.length > 0)).toEqual([]);
      expect(all.some((one) => one.ended === "restored")).toBe(true);
    },
    LIMIT_MS,
  );

  test(
    "reaches the host when both layers are left out",
    async () => {
      const all = await outcomes({ paths: false, confined: false });
      expect(all.some((one) => one.touched.length > 0)).toBe(true);
    },
    LIMIT_MS,
  );
});
