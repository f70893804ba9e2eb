/** Texts of a node's report: each has a bound, by the contract or by a cut when the report is taken in. */

import { expect, test } from "vitest";
import { boundTexts } from "../../../../orchestrator/repairs/report-texts.ts";
import { ExitReport, Heartbeat } from "../../../../shared/agent-api/routes.ts";
import { REPORT_TEXT } from "../../../../shared/program/finding.ts";
import { fakeHeartbeat } from "../../../support/fakes/fake-heartbeat.ts";

const NODE = {
  nodeId: "n1",
  url: "http://127.0.0.1:1",
  serviceInstanceId: "s1",
  address: "127.0.0.1",
  live: [],
  snapshots: [],
} as const;
const LONG = "x".repeat(1_000_000);
const BOUNDS = ["maxLength", "pattern", "format", "const", "enum"];

/** The places of strings without a bound in a schema. */
function unbounded(schema: unknown, place: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { type } = schema as { readonly type?: unknown };
  if (type === "string") return BOUNDS.some((name) => name in schema) ? [] : [place];
  return Object.entries(schema).flatMap(([name, part]) => unbounded(part, `${place}.${name}`));
}

test("the contract bounds every text of a report but those of the node's facts and load", () => {
  const { node, load, ...others } = Heartbeat.properties;
  expect(unbounded({ others, exits: ExitReport }, "report")).toEqual([]);
  const named = ["nodeId", "serviceInstanceId", "apiUrl", "proxyUrl", "machineId"] as const;
  for (const name of named) expect(unbounded(node.properties[name], name)).toEqual([]);
  expect(unbounded(load, "load")).not.toEqual([]);
});

test("what a node says of itself and of its load is cut, wherever it stands", () => {
  const finding = { id: LONG, problem: LONG, evidence: LONG, wayOut: LONG };
  const report = fakeHeartbeat({
    ...NODE,
    options: {
      facts: {
        version: LONG,
        commit: LONG,
        labels: { [LONG]: LONG },
        machine: { cpuFamily: LONG, cpuModel: LONG, cpuModelName: LONG, cpuArchitecture: LONG },
        capabilities: { memorySnapshots: true, diskLimit: true, detail: { criu: LONG } },
      },
      load: {
        disks: [{ mountPoint: LONG, device: LONG, filesystemType: LONG, usedBytes: 1, totalBytes: 2 }],
        findings: [finding],
        pools: [{ buildId: LONG, ready: 1, wanted: 2 }],
      },
    },
  });
  const bounded = boundTexts(report);
  const texts = JSON.stringify(bounded).match(/x{2,}/g) ?? [];
  expect(texts).toHaveLength(17);
  expect(new Set(texts.map((text) => text.length))).toEqual(new Set([REPORT_TEXT]));
  expect(bounded.load.pools).toMatchObject([{ ready: 1, wanted: 2 }]);
});

test("a report of usual texts stays as it is", () => {
  const report = fakeHeartbeat({
    ...NODE,
    options: {},
  });
  expect(boundTexts(report)).toEqual(report);
});
