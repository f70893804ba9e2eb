/** The lanes of scripts/test: sets of tests that run side by side. */

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib");

function workDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-lanes-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

const around = (body: string) => `set -uo pipefail\nwork=$1\n. ${library}/ui.sh\n. ${library}/lanes.sh\n${body}`;

async function bash(body: string): Promise<string> {
  const { stdout } = await promisify(execFile)("bash", ["-c", around(body), "bash", workDirectory()]);
  return stdout.replaceAll(/\(\d+\.\d s\)/g, "(n s)");
}

test("two lanes run at the same time, and each prints its sets whole", async () => {
  // Each lane waits for a file of the other lane between its lines, so neither lane could end alone.
  const meet = (mine: string, other: string) =>
    `meet_${mine}() { echo ${mine} 1; : >"$work/${mine}"; until [ -e "$work/${other}" ]; do sleep 0.05; done; echo ${mine} 2; }
lane_${mine}() { attempt_aside ${mine} meet_${mine}; }`;
  const output = await bash(`${meet("left", "right")}
${meet("right", "left")}
start_lane lane_left
start_lane lane_right
wait_for_lanes
echo "worst $(worst_status)"; print_failures`);
  expect(output).toContain("\n=== left\nleft 1\nleft 2\n=== left: passed (n s)\n");
  expect(output).toContain("\n=== right\nright 1\nright 2\n=== right: passed (n s)\n");
  expect(output).toMatch(/\nworst 0\n$/);
});

test("a set that fails in a lane is a failure, and the sets after it still run", async () => {
  const output = await bash(`broken() { echo so; return 3; }
lane() { attempt_aside 'first set' broken; attempt_aside 'second set' echo fine; }
other() { attempt_aside 'third set' false; }
start_lane lane
start_lane other
wait_for_lanes
attempt 'last set' true
echo "worst $(worst_status)"; print_failures | sort`);
  expect(output).toContain("=== first set: FAILED with status 3 (n s)\n");
  expect(output).toContain("\n=== second set\nfine\n=== second set: passed (n s)\n");
  expect(output).toMatch(/\nworst 3\nFAILED: first set\nFAILED: third set\n$/);
});

test("two lanes that take sets from one list run each set once, and a lane that is free early takes the next one", async () => {
  const output = await bash(`late() { until [ -e "$work/all-done" ]; do sleep 0.05; done; echo late; }
quick() { echo "quick $1"; }
last() { : >"$work/all-done"; }
sets() {
  if claim long; then attempt_aside 'long set' late; fi
  for name in one two three; do if claim "$name"; then attempt_aside "set $name" quick "$name"; fi; done
  if claim last; then attempt_aside 'last set' last; fi
}
start_lane sets
start_lane sets
wait_for_lanes
echo "worst $(worst_status)"`);
  for (const name of ["one", "two", "three"]) expect(output.match(new RegExp(`^quick ${name}$`, "gm"))).toHaveLength(1);
  // It ends only because the other lane has come as far as the last set, whose lines may come before or after these.
  expect(output).toContain("=== long set\nlate\n=== long set: passed (n s)\n");
  expect(output).toMatch(/\nworst 0\n$/);
}, 60_000);

test("an interrupted run ends every process of its lanes and prints their output", async () => {
  const work = workDirectory();
  const body = `pausedSandbox() { echo begun; sleep 600 & echo $! >"$work/pid.new"; mv "$work/pid.new" "$work/pid"; wait; }
lane() { attempt_aside 'long set' pausedSandbox; }
trap 'stop_lanes; exit 130' TERM
start_lane lane
wait_for_lanes`;
  const script = spawn("bash", ["-c", around(body), "bash", work], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  script.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const status = new Promise<number | null>((resolve) => script.on("close", resolve));
  const pid = () => Number(readFileSync(join(work, "pid"), "utf8"));
  await expect.poll(() => isAlive(pid())).toBe(true);
  script.kill("SIGTERM");
  expect(await status).toBe(130);
  expect(output).toBe("\n=== long set\nbegun\n");
  await expect.poll(() => isAlive(pid())).toBe(false);
}, 60_000);

/** A zombie does not count as alive: it only waits until its parent reads its status. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
