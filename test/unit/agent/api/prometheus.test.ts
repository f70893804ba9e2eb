/** The figures about a node's disk that operators scrape. */

import { expect, test } from "vitest";
import { createInstruments, type InstrumentSources } from "../../../../agent/api/prometheus.ts";

const space = { device: 1, freeBytes: 300, totalBytes: 1_000, freeInodes: 1, totalInodes: 1 };
const sources: InstrumentSources = {
  nodeId: "n1",
  running: () => 3,
  starting: () => 0,
  held: () => 2,
  withoutLease: () => 3,
  disks: () => ({
    snapshots: { space, reserve: { bytes: 50, inodes: 0 }, level: { is: "enough" } },
    sandboxes: { space: { ...space, freeBytes: 700 }, reserve: { bytes: 70, inodes: 0 }, level: { is: "enough" } },
  }),
  sandboxDisk: () => ({ promisedBytes: 900, usedBytes: 200, freeBytes: 700, reserveBytes: 70, short: false }),
  diskWork: () => ({
    make: { count: 3, seconds: 0.5 },
    ahead: { count: 2, seconds: 1.5 },
    frozen: { count: 2, seconds: 0.25 },
  }),
  fetchedDisks: () => 1,
  stored: () => ({ storedBytes: 400, quotaBytes: 500 }),
  blobTraffic: () => ({ to_store: 10, from_store: 20, to_nodes: 30, from_nodes: 40 }),
  uploads: () => ({
    snapshots: { waiting: 3, bytes: 700, failures: 2 },
    images: { waiting: 1, bytes: 0, failures: 0 },
  }),
  certificateUntil: () => 1_800_000_000_000,
  pools: () => [],
  poolAccount: () => ({ asked: [], usedBytes: 0, boundBytes: 0 }),
  slots: () => 0,
  pendingRemovals: () => 0,
  placeholderUses: () => ({ used: 5, missing: 1, refused: 0, unavailable: 2 }),
  orchestratorReached: () => true,
  memoryKills: () => 4,
  egress: () => ({
    decisions: new Map([
      ["tcp allow", 5],
      ["dns deny", 2],
    ]),
    sentBytes: 70,
    receivedBytes: 90,
  }),
  ways: () =>
    new Map([
      ["forward", false],
      ["resolver", true],
    ]),
  findings: () => [{ id: "network.forward" }],
  volumes: () => [
    { id: "a", sizeMb: 100, usedBytes: 5_000 },
    { id: "b", sizeMb: 28, usedBytes: 1_000 },
  ],
  volumeRequests: () => 6,
  hostLimits: () => ({ connections: { used: 12, max: 262_144 }, terminals: { used: 3, max: 3_072 } }),
};

test("/metrics has held sandboxes, free and reserved bytes of each disk, what is promised and used, and the quota's use", async () => {
  const text = await createInstruments(sources).text();
  expect(text.split("\n").filter((line) => /^svc_(sandboxes_held|disk|snapshot)/.test(line))).toEqual([
    "svc_sandboxes_held 2",
    'svc_disk_free_bytes{disk="snapshots"} 300',
    'svc_disk_free_bytes{disk="sandboxes"} 700',
    'svc_disk_reserve_bytes{disk="snapshots"} 50',
    'svc_disk_reserve_bytes{disk="sandboxes"} 70',
    'svc_disk_promised_bytes{disk="sandboxes"} 900',
    'svc_disk_used_bytes{disk="sandboxes"} 200',
    'svc_disk_work_total{work="make"} 3',
    'svc_disk_work_total{work="ahead"} 2',
    'svc_disk_work_total{work="frozen"} 2',
    'svc_disk_work_seconds_total{work="make"} 0.5',
    'svc_disk_work_seconds_total{work="ahead"} 1.5',
    'svc_disk_work_seconds_total{work="frozen"} 0.25',
    "svc_snapshot_stored_bytes 400",
    "svc_disks_fetched 1",
    "svc_snapshot_quota_bytes 500",
  ]);
});

test("/metrics has what the node has exchanged with the blob store and with other nodes, and what waits for the store", async () => {
  const instruments = createInstruments(sources);
  await instruments.text();
  const lines = (await instruments.text()).split("\n").filter((line) => line.startsWith("svc_blob"));
  expect(lines).toEqual([
    'svc_blob_bytes_total{way="to_store"} 10',
    'svc_blob_bytes_total{way="from_store"} 20',
    'svc_blob_bytes_total{way="to_nodes"} 30',
    'svc_blob_bytes_total{way="from_nodes"} 40',
    'svc_blob_uploads_waiting{kind="snapshots"} 3',
    'svc_blob_uploads_waiting{kind="images"} 1',
    'svc_blob_uploads_waiting_bytes{kind="snapshots"} 700',
    'svc_blob_uploads_waiting_bytes{kind="images"} 0',
    'svc_blob_upload_failures_total{kind="snapshots"} 2',
    'svc_blob_upload_failures_total{kind="images"} 0',
  ]);
});

test("/metrics has the end of the node's certificate, and nothing in its place for a node that has not joined", async () => {
  const line = async (certificateUntil: InstrumentSources["certificateUntil"]) => {
    const text = await createInstruments({ ...sources, certificateUntil }).text();
    return text.split("\n").filter((each) => each.startsWith("svc_machine_certificate"));
  };
  expect(await line(() => 1_800_000_000_000)).toEqual(["svc_machine_certificate_expiry_timestamp_seconds 1800000000"]);
  expect(await line(undefined)).toEqual([]);
});

test("/metrics has number, sizes and use of the node's volumes, and open requests for their content", async () => {
  const text = await createInstruments(sources).text();
  expect(text.split("\n").filter((line) => line.startsWith("svc_volume"))).toEqual([
    "svc_volumes 2",
    `svc_volume_size_bytes ${128 * 1024 ** 2}`,
    "svc_volume_used_bytes 6000",
    "svc_volume_content_open 6",
  ]);
});

test("/metrics counts processes that were killed because their sandbox was out of memory", async () => {
  const instruments = createInstruments(sources);
  for (const text of [await instruments.text(), await instruments.text()])
    expect(text).toMatch(/^svc_sandbox_oom_kills_total 4$/m);
});

test("/metrics counts decisions about sandboxes' connections, and their bytes, once", async () => {
  const instruments = createInstruments(sources);
  await instruments.text();
  const lines = (await instruments.text()).split("\n").filter((line) => line.startsWith("svc_egress"));
  expect(lines).toEqual([
    'svc_egress_decisions_total{proto="tcp",verdict="allow"} 5',
    'svc_egress_decisions_total{proto="dns",verdict="deny"} 2',
    'svc_egress_bytes_total{dir="sent"} 70',
    'svc_egress_bytes_total{dir="received"} 90',
  ]);
});

test("/metrics has use and most of each limit of the kernel that the machine shares", async () => {
  const text = await createInstruments(sources).text();
  expect(text.split("\n").filter((line) => line.startsWith("svc_host_limit"))).toEqual([
    'svc_host_limit_used{limit="connections"} 12',
    'svc_host_limit_used{limit="terminals"} 3',
    'svc_host_limit_max{limit="connections"} 262144',
    'svc_host_limit_max{limit="terminals"} 3072',
  ]);
});

test("no metric about disks exists before their first measurement", async () => {
  const text = await createInstruments({ ...sources, disks: () => undefined, sandboxDisk: () => undefined }).text();
  expect(text).not.toMatch(/^svc_disk_(free|reserve|promised|used)/m);
  expect(text).toMatch(/^svc_sandboxes_held 2$/m);
  expect(text).toMatch(/^svc_sandboxes_without_lease 3$/m);
});

test("/metrics has the ways of the network that the host stops, and what the node cannot do", async () => {
  const text = await createInstruments(sources).text();
  expect(text.split("\n").filter((line) => /^svc_(network_passes|node_finding)/.test(line))).toEqual([
    'svc_network_passes{way="forward"} 0',
    'svc_network_passes{way="resolver"} 1',
    'svc_node_finding{id="network.forward"} 1',
  ]);
});
