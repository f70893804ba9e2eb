/** How `svc doctor` reads what programs and files say. */

import { expect, test } from "vitest";
import { nameServersIn } from "../../../machine/evidence/name-servers.ts";
import { slotsOf } from "../../../machine/evidence/objects.ts";
import { samplesIn } from "../../../machine/evidence/programs/metrics.ts";
import { listener } from "../../../machine/evidence/programs/ports.ts";
import { failingOfLines, unitIn } from "../../../machine/evidence/programs/programs.ts";
import { settingsIn } from "../../../shared/program/service/settings-lines.ts";

test("who listens on a port is read from ss, with IPv6 and without rights to see the program", () => {
  const text = [
    'LISTEN 0 511 127.0.0.1:13000 0.0.0.0:* users:(("node",pid=7,fd=18))',
    'LISTEN 0 511 127.0.0.1:3000 0.0.0.0:* users:(("nginx",pid=42,fd=6),("nginx",pid=43,fd=6))',
    "LISTEN 0 511 [::1]:3002 [::]:*",
  ].join("\n");
  expect(listener(text, 3000)).toEqual({ name: "nginx", pid: 42 });
  expect(listener(text, 3002)).toEqual({ name: "a program of another user", pid: 0 });
  expect(listener(text, 300)).toBeUndefined();
});

test("failed checks of readiness are read from lines", () => {
  expect(failingOfLines("ok   engine\nfail lease: it has lapsed: see the log\nfail network\n")).toEqual({
    lease: "it has lapsed: see the log",
    network: "",
  });
});

test("name servers are read from resolv.conf", () => {
  expect(nameServersIn("# nameserver 192.0.2.1\nsearch a\nnameserver 192.0.2.2\n  nameserver ::1 # own\n")).toEqual([
    "192.0.2.2",
    "::1",
  ]);
});

test("links are read from a set of the firewall, those of this network alone", () => {
  const text = JSON.stringify({
    nftables: [{ set: { elem: [{ concat: ["svc-2", "10.213.0.2"] }, "svctest-3", "svc-probe"] } }],
  });
  expect(slotsOf(text, "svc")).toEqual(["svc-2"]);
  expect(slotsOf(text, "svctest")).toEqual(["svctest-3"]);
});

test("settings are read as a shell and systemd read them", () => {
  const text = 'A=1\n# B=2\nexport C="with \\"quotes\\" and \\$"\nD=\'single\'\nlower=no\nE=\n';
  expect(settingsIn(text)).toEqual({ A: "1", C: 'with "quotes" and $', D: "single", E: "" });
});

test("samples that checks need are read from metrics, whatever their labels hold", () => {
  const text = [
    "# HELP svc_webhook_queue Deliveries",
    "# TYPE svc_webhook_queue gauge",
    "svc_webhook_queue 12",
    'svc_pool_size{build="a\\"b,state=\\"x",state="ready"} 3',
    'svc_sandbox_create_duration_seconds_bucket{le="+Inf",path="warm",result="ok"} 1.5e+3',
    'svc_http_request_duration_seconds_count{route="/x"} 4',
    "",
  ].join("\n");
  expect(samplesIn(text)).toEqual([
    { name: "svc_webhook_queue", labels: {}, value: 12 },
    { name: "svc_pool_size", labels: { build: 'a\\"b,state=\\"x', state: "ready" }, value: 3 },
    {
      name: "svc_sandbox_create_duration_seconds_bucket",
      labels: { le: "+Inf", path: "warm", result: "ok" },
      value: 1500,
    },
  ]);
});

test("a unit is read from systemctl: its restarts, how long it runs, and a file that systemd has not read", () => {
  const shown = [
    "MainPID=42",
    "NRestarts=4",
    "NeedDaemonReload=yes",
    "ActiveState=active",
    "SubState=running",
    "ExecMainStartTimestampMonotonic=30000000",
  ].join("\n");
  expect(unitIn("svc-agent.service", shown, 90)).toEqual({
    name: "svc-agent.service",
    state: "active (running)",
    pid: 42,
    restarts: 4,
    runningSeconds: 60,
    isStale: true,
  });
  expect(unitIn("x", "MainPID=0\nLoadState=not-found\nActiveState=inactive\nSubState=dead\n", 90)).toMatchObject({
    state: "not there",
  });
  expect(unitIn("x", "MainPID=0\nActiveState=failed\nSubState=failed\n", 90)).toMatchObject({
    pid: undefined,
    restarts: 0,
    runningSeconds: undefined,
    isStale: false,
  });
});
