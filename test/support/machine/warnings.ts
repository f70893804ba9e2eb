/** Faults that are warnings, as changes of healthy evidence, each with the check that must find it. */

import { type Change, certificate, changed, counted, disk, docker, finding, node, program, some } from "./changes.ts";
import { NOW, UNIT } from "./healthy.ts";

export const WARNINGS: readonly (readonly [fault: string, check: string, change: Change])[] = [
  ["a disk is 92 % full", "disks.short", disk({ freeBytes: 8 * 2 ** 30 })],
  ["the clock runs free", "clock.free", ({ clock }) => ({ clock: changed(clock, { synchronized: false }) })],
  [
    "there is no /dev/fuse",
    "kernel.devices",
    ({ kernel }) => ({ kernel: changed(kernel, { devices: [{ path: "/dev/fuse", module: "fuse", is: false }] }) }),
  ],
  [
    "a limit is near",
    "kernel.limits",
    ({ kernel }) => ({ kernel: changed(kernel, { limits: [{ name: "open files", used: 95, max: 100 }] }) }),
  ],
  [
    "runc has a hole",
    "runc.holes",
    ({ versions }) => ({
      versions: changed(versions, {
        runc: { version: "1.1.5", changes: "CVE-2024-21626 CVE-2025-31133 CVE-2025-52565" },
      }),
    }),
  ],
  [
    "the kernel has a hole",
    "kernel.holes",
    ({ versions }) => ({ versions: changed(versions, { kernel: { release: "5.15.20", build: "" } }) }),
  ],
  ["Docker ends sandboxes with itself", "docker.live-restore", docker({ liveRestore: false })],
  ["the storage driver is another", "docker.storage", docker({ storageDriver: "vfs" })],
  ["containerd stores the images", "docker.storage", docker({ storageDriver: "overlayfs" })],
  ["memory is restored as a whole", "criu.agent", finding("memory.lazy-pages")],
  ["there are no own disks", "disks.own", finding("disks.own")],
  [
    "one of two name servers is dead",
    "dns.partly",
    ({ dns }) => ({ dns: [...some(dns), { address: "192.0.2.54", answers: false }] }),
  ],
  ["a certificate ends soon", "certificates.ending", certificate({ until: NOW + 3_600_000 })],
  [
    "the domain's certificate is without its chain",
    "certificates.chain",
    program("orchestrator", {
      certificate: "the file has the certificate without its chain, so most clients do not trust it",
    }),
  ],
  [
    "the domain leads nowhere",
    "certificates.reach",
    () => ({ site: { unreached: ["api.a.example has no address here (ENOTFOUND)"] } }),
  ],
  ["a program has no supervisor", "programs.unsupervised", program("agent", { supervised: false })],
  ["a program may open few files", "programs.files", program("orchestrator", { files: 1_024 })],
  ["a restart is due", "upgrade.restart", program("orchestrator", { installed: "0.2.0 (def)" })],
  ["settings have changed", "upgrade.restart", program("agent", { settingsChanged: true })],
  ["a node is of another version", "versions.nodes", node({ version: "0.0.9" })],
  ["a node lacks something", "nodes.findings", finding("node.address")],
  ["a unit is edited", "units.stale", program("agent", { unit: { ...UNIT, isStale: true } })],
  ["a program ends again and again", "units.restarts", program("agent", { unit: { ...UNIT, runningSeconds: 20 } })],
  ["a program has too much work", "programs.slow", counted("nodejs_eventloop_lag_p99_seconds", 0.9, {}, "agent")],
  ["creates fail", "creates.failing", counted("svc_sandbox_create_failures_total", 20)],
  [
    "creates are slow",
    "creates.slow",
    counted("svc_sandbox_create_duration_seconds_bucket", 150, { path: "warm", le: "1" }),
  ],
  ["warm containers are missing", "pool.short", counted("svc_pool_size", 1, { state: "ready" })],
  ["webhooks are not taken", "webhooks.waiting", counted("svc_webhook_queue", 5_000)],
  ["a loop device is left", "orphans.mounts", () => ({ leftovers: ["/dev/loop7: /var/lib/svc/x.img (deleted)"] })],
];
