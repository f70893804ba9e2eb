/** How the orchestrator's own machine becomes a node of its fleet, and what a cut or a refusal leaves. */

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib");
const FLEET = "SVC_NODES_HOST=198.51.100.1\nSVC_NODES_PORT=3003\nSVC_API_PORT=3000\n";

interface Answers {
  /** Whether the platform takes the certificate that the machine has. */
  readonly isMember?: boolean;
  /** What the agent's start does. Default: it joins. */
  readonly start?: string;
}

/** A machine in directories of this test. Its steps write their names down in place of their work. */
function machine(orchestrator = FLEET, role = "") {
  const home = mkdtempSync(join(tmpdir(), "svc-own-node-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const [etc, state, run] = ["etc", "state", "run"].map((name) => join(home, name)) as [string, string, string];
  const app = join(home, "app");
  const steps = join(home, "host/services");
  for (const directory of [etc, join(state, "agent/membership"), run, app, steps])
    mkdirSync(directory, { recursive: true });
  writeFileSync(join(etc, "orchestrator.env"), orchestrator);
  writeFileSync(join(etc, "agent.own.env"), "");
  writeFileSync(join(etc, "admin-token"), "operator\n");
  if (role !== "") writeFileSync(join(etc, "role"), role);
  const script = (path: string, text: string) => {
    writeFileSync(path, `#!/bin/bash\n${text}\n`);
    chmodSync(path, 0o755);
  };
  const did = join(home, "did");
  const membership = join(state, "agent/membership/membership.json");
  // Those of a member while the token is there, as the real ones.
  script(
    join(steps, "settings"),
    `echo settings >>${did}; grep '^SVC_AGENT_HOST' ${etc}/fleet.env >${etc}/agent.env; [ ! -s ${etc}/join-token ] || echo SVC_JOIN_TOKEN_FILE=${etc}/join-token >>${etc}/agent.env`,
  );
  script(
    join(home, "service"),
    'echo \'{}\'; echo \'{"message":"configuration: this machine did not join the platform: the reason","stack":"at"}\'',
  );
  const joins = ({ isMember = true, start = `echo {} >${membership}` }: Answers = {}, argument = "") => {
    rmSync(did, { force: true });
    script(join(app, "node"), `echo "$2" >>${did}; exit ${isMember ? 0 : 2}`);
    const lone = `grep -q SVC_JOIN_TOKEN_FILE ${etc}/agent.env || { echo "started alone" >>${did}; exit 0; }`;
    script(join(steps, "start"), `${lone}\necho started >>${did}; ${start}`);
    const text = `set -euo pipefail
here=${home}
. ${library}/environment.sh; . ${library}/ui.sh
eval "$(sed -e 's|^CONFIG_DIR=.*|CONFIG_DIR=${etc}|' -e 's|^STATE_DIR=.*|STATE_DIR=${state}|' -e 's|^RUN_DIR=.*|RUN_DIR=${run}|' -e 's|^APP=.*|APP=${app}|' ${library}/instance.sh)"
. ${library}/engine.sh; . ${library}/services.sh; . ${library}/role.sh; . ${library}/own-node.sh
local_curl() { [ "$(cat)" = 'X-Admin-Token: operator' ] && printf '{"id":"x","token":"svcjoin1.%s"}' "$(wc -l <${did} 2>/dev/null || echo 0)"; }
own_node_is_due || { echo 'not due'; exit 0; }
own_node_joins ${argument}`;
    const { status, stdout, stderr } = spawnSync("bash", ["-pc", text], { encoding: "utf8" });
    const steps_ = existsSync(did) ? readFileSync(did, "utf8").trim().split("\n") : [];
    return { status, stdout: stdout.trim(), stderr: stderr.replaceAll(home, "HOME"), did: steps_ };
  };
  const token = join(etc, "join-token");
  return { etc, joins, membership, token, has: (file: string) => existsSync(file) };
}

test.each([
  ["without a port for nodes", "SVC_API_PORT=3000\n", ""],
  ["with a free port that nobody knows before", "SVC_NODES_PORT=0\n", ""],
  ["of a machine that is a node itself", FLEET, "node"],
  ["of a machine that runs no sandboxes", FLEET, "orchestrator"],
])("a platform %s leaves its agent as it is", (_what, orchestrator, role) => {
  const { joins, token, has } = machine(orchestrator, role);
  expect(joins()).toMatchObject({ stdout: "not due", did: [] });
  expect(has(token)).toBe(false);
});

test("the own machine joins once: its settings change with the token, which only root reads, and a second run does nothing", () => {
  const { etc, joins, membership, token, has } = machine();
  expect(joins()).toMatchObject({ status: 0, did: ["settings", "started"] });
  expect(has(membership)).toBe(true);
  expect(statSync(token).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(etc, "fleet.env"), "utf8")).toContain('SVC_ORCHESTRATOR_URL="https://198.51.100.1:3003"');
  const first = readFileSync(token, "utf8");
  expect(joins()).toMatchObject({ status: 0, did: ["settings", "--check-membership", "started"] });
  expect(readFileSync(token, "utf8")).toBe(first);
});

test("a member that the platform does not take any more joins again with a new token, and keeps its key", () => {
  const { etc, joins, membership, token, has } = machine();
  joins();
  const key = join(etc, "../state/agent/membership/key.pem");
  writeFileSync(key, "the key");
  const first = readFileSync(token, "utf8");
  const again = joins({ isMember: false });
  expect(again).toMatchObject({ status: 0, did: ["settings", "--check-membership", "settings", "started"] });
  expect(readFileSync(token, "utf8")).not.toBe(first);
  expect([has(membership), readFileSync(key, "utf8")]).toEqual([true, "the key"]);
  // Also when it would be taken: for new tokens.
  expect(joins({}, "again").did).toEqual(["settings", "settings", "started"]);
});

test("a run that was cut before the agent had joined is repeated with a new token", () => {
  const { joins, membership, token, has } = machine();
  writeFileSync(token, "svcjoin1.former\n");
  expect(joins()).toMatchObject({ status: 0, did: ["settings", "settings", "started"] });
  expect(has(membership)).toBe(true);
  expect(readFileSync(token, "utf8")).not.toContain("former");
});

test("a first join that is refused says why, and the agent goes on over loopback", () => {
  const { joins, membership, token, has } = machine();
  const refused = joins({ start: "exit 1" });
  expect(refused).toMatchObject({ status: 1, did: ["settings", "started", "settings", "started alone"] });
  expect(refused.stderr).toContain("error: this machine did not join the platform: the reason\n");
  expect([has(membership), has(token)]).toEqual([false, false]);
});

test("a member whose new join is refused stays one", () => {
  const { joins, token, has } = machine();
  joins();
  expect(joins({ isMember: false, start: "exit 1" })).toMatchObject({ status: 1 });
  expect(has(token)).toBe(true);
});

test("a port at every address leads the others to an address of the machine", () => {
  const { etc, joins } = machine("SVC_NODES_HOST=0.0.0.0\nSVC_NODES_PORT=3003\nSVC_API_PORT=3000\n");
  const { status, stdout } = joins();
  expect(status).toBe(0);
  const fleet = existsSync(join(etc, "fleet.env")) ? readFileSync(join(etc, "fleet.env"), "utf8") : "";
  expect(fleet).not.toContain("0.0.0.0");
  expect(fleet === "" ? stdout : fleet).toMatch(/SVC_AGENT_HOST="\d+\.|stays alone/);
});
