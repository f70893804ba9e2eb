/** What a machine of a fleet runs, and what `up --join` and `node add` write down of it. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const scripts = join(import.meta.dirname, "../../../scripts");
const library = join(scripts, "lib");

/** Runs a command with the library, for a machine whose settings are in a directory of this test. */
function machine(role?: string) {
  const home = mkdtempSync(join(tmpdir(), "svc-role-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const etc = join(home, "etc");
  mkdirSync(etc);
  if (role !== undefined) writeFileSync(join(etc, "role"), `${role}\n`);
  const run = (command: string) => {
    const script = `set -euo pipefail
. ${library}/environment.sh; . ${library}/ui.sh
eval "$(sed 's|^CONFIG_DIR=.*|CONFIG_DIR=${etc}|' ${library}/instance.sh | sed 's|^CHECKOUT=.*|CHECKOUT=${home}|')"
. ${library}/engine.sh; . ${library}/services.sh; . ${library}/role.sh
${command}`;
    const { status, stdout, stderr } = spawnSync("bash", ["-pc", script], { encoding: "utf8" });
    return { status, stdout: stdout.trim(), stderr: stderr.replaceAll(home, "HOME") };
  };
  return { etc, run };
}

test.each([
  [undefined, "orchestrator agent", "http://127.0.0.1:5010/readyz?verbose"],
  ["node", "agent", "https://198.51.100.7:5010/readyz?verbose"],
  ["edge", "edge", "http://127.0.0.1:5010/readyz?verbose"],
  ["orchestrator", "orchestrator", "http://127.0.0.1:5010/readyz?verbose"],
])("a machine with the role %s runs %s, and its agent is asked at %s", (role, programs, url) => {
  const { etc, run } = machine(role);
  writeFileSync(join(etc, "agent.env"), "SVC_AGENT_HOST=198.51.100.7\nSVC_AGENT_PORT=5010\n");
  expect(run('echo "${PROGRAMS[*]}"; ready_url agent').stdout.split("\n")).toEqual([programs, url]);
});

test("the agent of the orchestrator's own machine is asked with TLS at its address once it joins", () => {
  const { etc, run } = machine();
  const member = `SVC_AGENT_HOST=198.51.100.7\nSVC_AGENT_PORT=5010\nSVC_JOIN_TOKEN_FILE=${etc}/join-token\n`;
  writeFileSync(join(etc, "agent.env"), member);
  expect(run("ready_url agent").stdout).toBe("https://198.51.100.7:5010/readyz?verbose");
});

test("a new machine takes a role once and keeps it; one with a platform of its own becomes nobody's node", () => {
  const fresh = machine();
  expect(fresh.run("take_role node").status).toBe(0);
  expect(readFileSync(join(fresh.etc, "role"), "utf8")).toBe("node\n");
  expect(fresh.run("take_role node").status).toBe(0);

  const settled = machine();
  writeFileSync(join(settled.etc, "orchestrator.env"), "SVC_API_PORT=3000\n");
  const { status, stderr } = settled.run("take_role node");
  expect(status).toBe(1);
  expect(stderr).toContain("this machine runs a platform of its own already, so it cannot become another one's node");
  expect(stderr).toContain("SVC_INSTANCE=name ./scripts/up");
  expect(existsSync(join(settled.etc, "role"))).toBe(false);
});

test("what a join decides is written down once, replaces its earlier value, and only root reads the file", () => {
  const { etc, run } = machine();
  const file = join(etc, "fleet.env");
  writeFileSync(file, 'SVC_DOMAIN="a.example"\nSVC_AGENT_HOST="198.51.100.1"\n');
  run("keep_setting SVC_AGENT_HOST 198.51.100.7; keep_setting SVC_NODES_PORT 3003");
  expect(readFileSync(file, "utf8")).toBe(
    'SVC_DOMAIN="a.example"\nSVC_AGENT_HOST="198.51.100.7"\nSVC_NODES_PORT="3003"\n',
  );
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test.each([
  ["https://198.51.100.1:3003", "198.51.100.1"],
  ["https://[2001:db8::1]:3003/", "2001:db8::1"],
  ["https://svc.example", "svc.example"],
  ["http://198.51.100.1:3003", ""],
  ["https://198.51.100.1:3003/path", ""],
  ["svcjoin1.abc", ""],
])("the host in %s is '%s'", (url, host) => {
  expect(machine().run(`host_in '${url}'`).stdout).toBe(host);
});

test("an edge follows several orchestrators, each at an address with TLS", () => {
  const { run } = machine();
  expect(run("hosts_in https://198.51.100.1:3003,https://svc.example").stdout).toBe("198.51.100.1\nsvc.example");
  expect(run("hosts_in https://198.51.100.1:3003,http://198.51.100.2:3003").stdout).toBe("");
});

test("an edge is asked at its port for operators", () => {
  const { etc, run } = machine("edge");
  writeFileSync(join(etc, "edge.env"), "SVC_EDGE_STATUS_PORT=3004\n");
  expect(run("ready_url edge").stdout).toBe("http://127.0.0.1:3004/readyz?verbose");
});

test("an address of this machine is found by the way to the orchestrator, and none where no way leads", () => {
  const { run } = machine();
  expect(run("address_towards 127.0.0.1").stdout).toBe("127.0.0.1");
  expect(run("getent() { return 2; }; address_towards nowhere")).toMatchObject({ status: 0, stdout: "" });
});

test.each([
  ["up", ["--join", "token"]],
  ["up", ["--edge-only"]],
  ["node", ["remove"]],
  ["node", ["remove", "n1", "--now"]],
])("%s %j is refused with the usage, which names the join", (script, given) => {
  const { status, stdout } = spawnSync(join(scripts, script), given, { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stdout).toMatch(
    script === "up" ? /--join TOKEN https:\/\/ORCHESTRATOR:PORT/ : /node add \[--edge\] \[ADDRESS\]/,
  );
});
