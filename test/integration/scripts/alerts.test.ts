/** The alert rules and the dashboard: what they name is there, and Prometheus's own tool takes them and the metrics of a live program. */

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { ALL_CHECKS } from "../../../machine/checks/all.ts";
import { ADMIN_TOKEN, startCluster } from "../../support/cluster/cluster.ts";

const checkout = join(import.meta.dirname, "../../..");
const folder = join(checkout, "docs/operating/prometheus");
/** `scripts/host/test/prometheus` puts it there. */
const PROMTOOL = "/opt/svc/test/prometheus/promtool";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string; readonly check?: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const { groups } = parse(readFileSync(join(folder, "svc.rules.yml"), "utf8")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const page = readFileSync(join(checkout, "docs/operating/alerts.md"), "utf8");
const sources = [
  ...["prometheus", "node-gauges", "site-gauges", "state-changes"].map((name) => `orchestrator/metrics/${name}.ts`),
  "agent/api/prometheus.ts",
  "orchestrator/edge/program/status.ts",
]
  .map((file) => readFileSync(join(checkout, file), "utf8"))
  .join("\n");

const metricsOf = (text: string) => [...new Set(text.match(/\bsvc_[a-z_]+/g) ?? [])];

/** What the page says to do about an alert. */
const partOf = (alert: string) => page.split(`\n## ${alert}\n`)[1]?.split("\n## ")[0] ?? "";
const checksIn = (text: string) => [...text.matchAll(/check `([^`]+)`/g)].map(([, name = ""]) => name);

test("there are at most fifteen alerts, each with another name", () => {
  expect(rules.length).toBeLessThanOrEqual(15);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

test.each(rules.map((rule) => [rule.alert, rule] as const))(
  "%s has its part of the page, its check and its metrics",
  (alert, rule) => {
    expect(rule.annotations.runbook).toBe(`docs/operating/alerts.md#${alert.toLowerCase()}`);
    expect(page).toContain(`\n## ${alert}\n`);
    // A finding names its check itself.
    if (alert !== "SvcFinding") expect(rule.labels.check).toMatch(/\w/);
    if (alert !== "SvcFinding") expect(checksIn(partOf(alert))[0]).toBe(rule.labels.check);
    for (const metric of metricsOf(rule.expr))
      expect(sources).toContain(`"${metric.replace(/_(bucket|count|sum)$/, "")}"`);
  },
);

test("every check that an alert or its part of the page names is one of svc doctor", () => {
  const known = new Set(ALL_CHECKS.map(({ id }) => id));
  const named = [...checksIn(page), ...rules.flatMap(({ labels: { check } }) => (check === undefined ? [] : [check]))];
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test("the dashboard shows metrics that are there", () => {
  const dashboard = readFileSync(join(folder, "dashboard.json"), "utf8");
  const metrics = metricsOf(dashboard);
  expect(metrics.length).toBeGreaterThan(8);
  for (const metric of metrics) expect(sources).toContain(`"${metric.replace(/_(bucket|count|sum)$/, "")}"`);
});

test("every metric of the programs is on an operators' page, and every one that the pages name is there", () => {
  const pages = ["metrics", "edges", "alerts", "machines", "network", "disks", "backup", "limits", "records"]
    .map((name) => readFileSync(join(checkout, `docs/operating/${name}.md`), "utf8"))
    .join("\n");
  const made = [...sources.matchAll(/"(svc_[a-z_]+)"/g)].map(([, name = ""]) => name);
  expect(made.length).toBeGreaterThan(60);
  expect(made.filter((name) => !new RegExp(`\\b${name}\\b`).test(pages))).toEqual([]);
  // One that is made for each change of a sandbox's state is named by one of them.
  const named = metricsOf(pages).filter(
    (name) => !/^svc_sandbox_(pause|resume|fork|rewind)_duration_seconds$/.test(name),
  );
  expect(named.filter((name) => !sources.includes(`"${name.replace(/_(bucket|count|sum)$/, "")}"`))).toEqual([]);
});

const promtool = (words: readonly string[], input?: string) =>
  spawnSync(PROMTOOL, words, { cwd: folder, encoding: "utf8", ...(input === undefined ? {} : { input }) });

test.skipIf(!existsSync(PROMTOOL))(
  "promtool takes the rules and passes their tests (only with SVC_TEST tools of scripts/host/test/prometheus)",
  () => {
    for (const words of [
      ["check", "rules", "svc.rules.yml"],
      ["test", "rules", "svc.test.yml"],
    ]) {
      const { status, stdout, stderr } = promtool(words);
      expect(status, `${stdout}${stderr}`).toBe(0);
    }
  },
);

test.skipIf(!existsSync(PROMTOOL))(
  "promtool takes the metrics of a live orchestrator (only with SVC_TEST tools of scripts/host/test/prometheus)",
  async () => {
    const cluster = await startCluster();
    try {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const { text } = await cluster.ask("GET", "/metrics", { key: null, headers });
      expect(text).toContain("svc_node_up");
      const { stdout, stderr } = promtool(["check", "metrics"], text);
      // It also has opinions about names that prom-client gives its own metrics.
      const own = `${stdout}${stderr}`.split("\n").filter((line) => /error|svc_/.test(line));
      expect(own).toEqual([]);
    } finally {
      await cluster.stop();
    }
  },
);
