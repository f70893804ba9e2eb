/** Every rule of scripts/check/dependencies.cjs fails when an import breaks it: a tree with one planted violation of each. */

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cruise, type IConfiguration, type ICruiseResult } from "dependency-cruiser";
import { afterAll, beforeAll, expect, test } from "vitest";

const load = createRequire(import.meta.url);
const file = join(import.meta.dirname, "../../../scripts/check/dependencies.cjs");
const rules = load(file) as {
  readonly forbidden: readonly { readonly name: string }[];
  readonly options: Record<string, unknown>;
};
const { ladder } = load(join(dirname(file), "orchestrator-ladder.cjs")) as { readonly ladder: readonly string[][] };

const { ladder: agentLadder } = createRequire(import.meta.url)(join(dirname(file), "agent-ladder.cjs")) as {
  readonly ladder: readonly string[][];
};

/** Rule → the file that breaks it, and what that file imports: another file, or a package, whose files are in its dist/. */
const PLANTED: Readonly<Record<string, readonly [from: string, to: string]>> = {
  "no-cycles": ["shared/circle/a.ts", "shared/circle/b.ts"],
  "programs-do-not-import-each-other": ["agent/one.ts", "envd/two.ts"],
  "the-console-has-types-of-the-api-alone": ["console/values.ts", "shared/api/values.ts"],
  "the-console-imports-the-public-api-alone": ["console/inside.ts", "shared/program/inside.ts"],
  "shared-is-a-leaf": ["shared/leaf.ts", "agent/branch.ts"],
  "nothing-shipped-imports-tests-or-scripts": ["envd/shipped.ts", "test/helper.ts"],
  "the-build-needs-no-tools": ["scripts/lib/programs/tool.ts", "vitest"],
  "main-is-not-imported": ["envd/early.ts", "envd/main.ts"],
  "envd-stays-light": ["envd/heavy.ts", "fastify"],
  "interpreter-stays-light": ["interpreter/heavy.ts", "undici"],
  "a-worker-is-a-program-of-its-own": ["interpreter/kernels/workers/javascript/worker.ts", "interpreter/server.ts"],
  "interpreter-kernels-know-no-context": ["interpreter/kernels/known.ts", "interpreter/context.ts"],
  "interpreter-json-is-a-leaf": ["interpreter/json/leaf.ts", "interpreter/branch.ts"],
  "zeromq-has-one-owner": ["interpreter/other.ts", "zeromq"],
  "dockerode-has-one-owner": ["agent/other.ts", "dockerode"],
  "sqlite-has-its-owners": ["orchestrator/sqlite.ts", "better-sqlite3"],
  "openid-client-has-one-owner": ["orchestrator/console/sessions.ts", "openid-client"],
  "pg-has-one-owner": ["orchestrator/store/second.ts", "pg"],
  "the-command-knows-the-api-alone": ["cli/other.ts", "shared/program/loop.ts"],
  "the-machine-belongs-to-the-command": ["cli/commands/nodes.ts", "machine/base/instance.ts"],
  "the-machine-knows-no-program": ["machine/base/knows.ts", "shared/program/loop.ts"],
  "machine-ladder-bundle-backup": ["machine/bundle/sideways.ts", "machine/backup/backup.ts"],
  "machine-ladder-doctor": ["machine/doctor/up.ts", "machine/bundle/parts.ts"],
  "machine-ladder-checks": ["machine/checks/up.ts", "machine/doctor/doctor.ts"],
  "machine-ladder-evidence": ["machine/evidence/up.ts", "machine/checks/all.ts"],
  "machine-ladder-invariants-known-base": ["machine/base/up.ts", "machine/evidence/gather.ts"],
  "the-command-loads-no-contract": ["cli/loads.ts", "shared/api/some.ts"],
  "http-proxy-has-its-owners": ["shared/proxy/other.ts", "http-proxy"],
  "x509-has-its-owners": ["orchestrator/volumes/signs.ts", "@peculiar/x509"],
  "jose-has-one-owner": ["orchestrator/volumes/other.ts", "jose"],
  "pino-has-one-owner": ["shared/program/other.ts", "pino"],
  "opentelemetry-has-one-owner": ["shared/program/tracing/other.ts", "@opentelemetry/api"],
  "socks-has-one-owner": ["agent/socks.ts", "socks"],
  "orchestrator-store-imports-no-handler": ["orchestrator/store/up.ts", "orchestrator/sandboxes/handlers.ts"],
  "callers-are-a-leaf": ["orchestrator/callers/up.ts", "orchestrator/handlers.ts"],
  "edge-imports-nothing-of-the-control-plane": ["orchestrator/edge/up.ts", "orchestrator/control.ts"],
  "orchestrator-ladder-api": ["orchestrator/api/up.ts", "orchestrator/app.ts"],
  "orchestrator-ladder-console": ["orchestrator/console/up.ts", "orchestrator/api/health.ts"],
  "orchestrator-ladder-repairs": ["orchestrator/repairs/up.ts", "orchestrator/api/admin.ts"],
  "orchestrator-ladder-projects": ["orchestrator/projects/up.ts", "orchestrator/repairs/adoption.ts"],
  "orchestrator-ladder-sandboxes-snapshots": ["orchestrator/sandboxes/aside.ts", "orchestrator/snapshots/expiry.ts"],
  "orchestrator-ladder-builds-volumes-webhooks-dashboard": [
    "orchestrator/builds/aside.ts",
    "orchestrator/volumes/content.ts",
  ],
  "orchestrator-ladder-templates-events-usage-identity-audit-rotation-edges": [
    "orchestrator/templates/up.ts",
    "orchestrator/builds/queue.ts",
  ],
  "orchestrator-ladder-lifecycle": ["orchestrator/lifecycle/up.ts", "orchestrator/sandboxes/view.ts"],
  "orchestrator-ladder-secrets-metrics": ["orchestrator/secrets/up.ts", "orchestrator/lifecycle/pausing/pause.ts"],
  "orchestrator-ladder-nodes": ["orchestrator/nodes/up.ts", "orchestrator/lifecycle/ending/kill.ts"],
  "orchestrator-ladder-access-network-policy-machines": ["orchestrator/machines/up.ts", "orchestrator/nodes/nodes.ts"],
  "orchestrator-ladder-base": ["orchestrator/base/up.ts", "orchestrator/access/auth.ts"],
  "orchestrator-ladder-store": ["orchestrator/store/sideways.ts", "orchestrator/base/keys/seeds.ts"],
  "orchestrator-ladder-callers-edge-forms-config": ["orchestrator/forms/up.ts", "orchestrator/store/store.ts"],
  "orchestrator-ladder-holds-every-folder": ["orchestrator/nodes/astray.ts", "orchestrator/drawer/of-everything.ts"],
  "agent-store-is-a-leaf": ["agent/store/up.ts", "agent/above.ts"],
  "egress-is-a-program-of-its-own": ["agent/egress/up.ts", "agent/network/above.ts"],
  "agent-ladder-egress": ["agent/egress/climbs.ts", "agent/host/a.ts"],
  "agent-ladder-host": ["agent/host/climbs.ts", "agent/store/b.ts"],
  "agent-ladder-joining": ["agent/joining/climbs.ts", "agent/serving/j.ts"],
  "agent-ladder-store": ["agent/store/climbs.ts", "agent/containers/c.ts"],
  "agent-ladder-egress-supervisor": ["agent/egress-supervisor/climbs.ts", "agent/network/d.ts"],
  "agent-ladder-placeholders": ["agent/placeholders/climbs.ts", "agent/serving/e.ts"],
  "agent-ladder-serving": ["agent/serving/climbs.ts", "agent/api/f.ts"],
  "agent-ladder-blobs": ["agent/blobs/climbs.ts", "agent/network/blob.ts"],
  "agent-ladder-network": ["agent/network/climbs.ts", "agent/containers/g.ts"],
  "agent-ladder-containers": ["agent/containers/climbs.ts", "agent/builds/images/h.ts"],
  "agent-ladder-sandbox-disks": ["agent/sandbox-disks/climbs.ts", "agent/procfs/i.ts"],
  "agent-ladder-procfs": ["agent/procfs/climbs.ts", "agent/sandbox-disks/j.ts"],
  "agent-ladder-cpu-sets": ["agent/cpu-sets/climbs.ts", "agent/procfs/k.ts"],
  "agent-ladder-node-disk": ["agent/node-disk/climbs.ts", "agent/sandboxes/k.ts"],
  "agent-ladder-volumes": ["agent/volumes/climbs.ts", "agent/node-disk/l.ts"],
  "agent-ladder-sandboxes": ["agent/sandboxes/pool/climbs.ts", "agent/snapshots/take/m.ts"],
  "agent-ladder-lease": ["agent/lease/climbs.ts", "agent/snapshots/z.ts"],
  "agent-ladder-proxy": ["agent/proxy/climbs.ts", "agent/snapshots/n.ts"],
  "agent-ladder-snapshots": ["agent/snapshots/store/climbs.ts", "agent/builds/o.ts"],
  "agent-ladder-builds": ["agent/builds/steps/climbs.ts", "agent/recovery/p.ts"],
  "agent-ladder-recovery": ["agent/recovery/climbs.ts", "agent/api/q.ts"],
  "agent-ladder-disk-pressure": ["agent/disk-pressure/climbs.ts", "agent/recovery/y.ts"],
  "agent-ladder-api": ["agent/api/climbs.ts", "agent/deps.ts"],
  "agent-ladder-wiring": ["agent/wiring/climbs.ts", "agent/host-deps.ts"],
  "agent-ladder-network-nft": ["agent/network/nft/climbs.ts", "agent/network/r.ts"],
  "agent-ladder-network-kernel": ["agent/network/kernel/climbs.ts", "agent/network/nft/w.ts"],
  "agent-ladder-network-itself": ["agent/network/inner.ts", "agent/network/reach/s.ts"],
  "agent-ladder-blobs-trees": ["agent/blobs/trees/inner.ts", "agent/blobs/tree.ts"],
  "agent-ladder-blobs-stores": ["agent/blobs/stores/inner.ts", "agent/blobs/trees/s.ts"],
  "agent-ladder-blobs-content": ["agent/blobs/content/inner.ts", "agent/blobs/stores/c.ts"],
  "agent-ladder-sandboxes-itself": ["agent/sandboxes/inner.ts", "agent/sandboxes/pool/t.ts"],
  "agent-ladder-builds-steps": ["agent/builds/steps/inner.ts", "agent/builds/images/u.ts"],
  "agent-ladder-builds-images": ["agent/builds/images/inner.ts", "agent/builds/v.ts"],
  "agent-ladder-snapshots-check": ["agent/snapshots/check/climbs.ts", "agent/snapshots/above-check.ts"],
  "agent-ladder-snapshots-beyond": ["agent/snapshots/beyond/inner.ts", "agent/snapshots/b.ts"],
  "agent-ladder-snapshots-restore": ["agent/snapshots/restore/inner.ts", "agent/snapshots/w.ts"],
  "agent-ladder-snapshots-take": ["agent/snapshots/take/inner.ts", "agent/snapshots/restore/w.ts"],
  "agent-ladder-snapshots-connections": ["agent/snapshots/connections/inner.ts", "agent/snapshots/take/w.ts"],
  "agent-ladder-snapshots-store": ["agent/snapshots/store/inner.ts", "agent/snapshots/take/w.ts"],
  "agent-ladder-snapshots-frozen": ["agent/snapshots/frozen/inner.ts", "agent/snapshots/store/w.ts"],
  "agent-ladder-snapshots-criu": ["agent/snapshots/criu/inner.ts", "agent/snapshots/connections/w.ts"],
  "agent-ladder-egress-traffic": ["agent/egress/traffic/inner.ts", "agent/egress/x.ts"],
  "agent-ladder-egress-company": ["agent/egress/company/inner.ts", "agent/egress/traffic/x.ts"],
  "agent-ladder-egress-rewrite": ["agent/egress/rewrite/inner.ts", "agent/egress/company/x.ts"],
  "agent-ladder-egress-connect": ["agent/egress/connect/inner.ts", "agent/egress/rewrite/x.ts"],
  "agent-ladder-egress-destinations": ["agent/egress/destinations/inner.ts", "agent/egress/connect/x.ts"],
  "agent-ladder-egress-dns": ["agent/egress/dns/inner.ts", "agent/egress/destinations/x.ts"],
  "agent-ladder-egress-sniff": ["agent/egress/sniff/inner.ts", "agent/egress/dns/x.ts"],
  "agent-ladder-egress-carry": ["agent/egress/carry/inner.ts", "agent/egress/sniff/x.ts"],
  "agent-ladder-egress-limits": ["agent/egress/limits/inner.ts", "agent/egress/carry/x.ts"],
  "agent-ladder-egress-channel": ["agent/egress/channel/inner.ts", "agent/egress/limits/x.ts"],
  "agent-ladder-egress-launch": ["agent/egress/launch/inner.ts", "agent/egress/channel/x.ts"],
  "agent-ladder-blobs-holds-every-room": ["agent/blobs/nowhere/new.ts", "shared/nothing.ts"],
  "agent-ladder-builds-holds-every-room": ["agent/builds/nowhere/new.ts", "shared/nothing.ts"],
  "agent-ladder-sandboxes-holds-every-room": ["agent/sandboxes/nowhere/new.ts", "shared/nothing.ts"],
  "agent-ladder-network-holds-every-room": ["agent/network/nowhere/new.ts", "shared/nothing.ts"],
  "agent-ladder-snapshots-holds-every-room": ["agent/snapshots/nowhere/new.ts", "shared/nothing.ts"],
  "agent-ladder-egress-holds-every-room": ["agent/egress/nowhere/new.ts", "shared/nothing.ts"],
  "agent-ladder-holds-every-folder": ["agent/nowhere/new.ts", "shared/nothing.ts"],
  "scripts-import-no-program": ["scripts/lib/look.ts", "agent/host/look.ts"],
  "a-program-takes-settings-from-its-config": ["agent/unsettled.ts", "shared/settings/agent.ts"],
  "app-calls-each-folder-through-its-wire": ["agent/app.ts", "agent/builds/part.ts"],
  "policy-is-pure": ["shared/policy/up.ts", "shared/above-policy.ts"],
  "states-are-pure": ["shared/states/up.ts", "shared/above-states.ts"],
  "pure-files-do-no-io": ["orchestrator/nodes/placement/choose.ts", "fs"],
  resolvable: ["agent/lost.ts", "no-such-package"],
};
const PACKAGES = [
  "fastify",
  "undici",
  "vitest",
  "zeromq",
  "dockerode",
  "better-sqlite3",
  "pg",
  "http-proxy",
  "@peculiar/x509",
  "jose",
  "pino",
  "socks",
  "openid-client",
  "@opentelemetry/api",
];

const tree = realpathSync(mkdtempSync(join(tmpdir(), "svc-imports-")));
afterAll(() => rmSync(tree, { recursive: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(tree, path)), { recursive: true });
  writeFileSync(join(tree, path), text);
}

const found = new Map<string, Set<string>>();
beforeAll(async () => {
  put("tsconfig.json", "{}");
  put("package.json", '{"type":"module","devDependencies":{"vitest":"1.0.0"}}');
  for (const name of PACKAGES) {
    put(`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "dist/index.js" }));
    put(`node_modules/${name}/dist/index.js`, "module.exports = {};\n");
  }
  for (const [from, to] of Object.values(PLANTED)) {
    const isFile = to.endsWith(".ts");
    const target = isFile ? `${"../".repeat(from.split("/").length - 1) || "./"}${to}` : to;
    put(from, `import * as planted from "${target}";\nexport const of = planted;\n`);
    if (isFile) put(to, "export const nothing = 0;\n");
  }
  put("shared/circle/b.ts", 'import * as planted from "./a.ts";\nexport const of = planted;\n');
  put(
    "agent/volumes/types.ts",
    'import type { nothing } from "../sandboxes/k.ts";\nexport type Of = typeof nothing;\n',
  );
  put("agent/volumes/down.ts", 'import { nothing } from "../host/a.ts";\nexport const of = nothing;\n');
  put("scripts/build.ts", 'import { nothing } from "../agent/host/a.ts";\nexport const of = nothing;\n');
  // Our own output is not judged.
  put("dist/orchestrator.js", 'import "jose";\n');
  const { options, forbidden } = rules;
  const result = await cruise(["."], {
    ...options,
    baseDir: tree,
    ruleSet: { forbidden } as IConfiguration,
    validate: true,
    tsConfig: { fileName: join(tree, "tsconfig.json") },
  });
  for (const { rule, from } of (result.output as ICruiseResult).summary.violations) {
    found.set(rule.name, (found.get(rule.name) ?? new Set()).add(from));
  }
});

test("every rule has a planted violation", () => {
  expect(Object.keys(PLANTED).toSorted()).toEqual(rules.forbidden.map(({ name }) => name).toSorted());
  expect(readFileSync(file, "utf8")).not.toContain('exclude: { path: "(^|/)');
});

test.each(Object.entries(PLANTED))("%s fails for the import that breaks it", (name, [from]) => {
  expect([...(found.get(name) ?? [])]).toContain(from);
});

test("an import of a type alone is refused as a climb, too", () => {
  expect([...(found.get("agent-ladder-volumes") ?? [])]).toContain("agent/volumes/types.ts");
});

test("an import of a lower rung is allowed, and so is a program in the script that builds it", () => {
  const files = [...found.values()].flatMap((of) => [...of]);
  expect(files.filter((path) => path === "agent/volumes/down.ts" || path === "scripts/build.ts")).toEqual([]);
});

test("docs/architecture.md shows the agent's ladder as the rules hold it", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/architecture.md"), "utf8");
  const [, drawn = ""] = /### The agent's ladder\n[^]*?```\n([^]*?)\n```/.exec(page) ?? [];
  const rungs = drawn.split("\n").map((line) => (line.split(/ {2,}/)[0] ?? "").split(", "));
  expect(rungs).toEqual(agentLadder);
});

test("docs/architecture.md shows the orchestrator's ladder as the rules hold it", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/architecture.md"), "utf8");
  const [, drawn = ""] = /### The orchestrator's ladder\n[^]*?```\n([^]*?)\n```/.exec(page) ?? [];
  const rungs = drawn.split("\n").map((line) => (line.split(/ {2,}/)[0] ?? "").split(", "));
  expect(rungs).toEqual(ladder);
});

test("our own built files are not judged", () => {
  expect([...found.values()].some((files) => [...files].some((path) => path.startsWith("dist/")))).toBe(false);
});
