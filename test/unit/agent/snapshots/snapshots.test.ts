/** Decisions about snapshots: which stored one is valid, which frozen one is evicted, and which ones belong to no record. */

import { describe, expect, test } from "vitest";
import { explainDump } from "../../../../agent/snapshots/criu/dump-log.ts";
import { planEviction } from "../../../../agent/snapshots/frozen/frozen-plan.ts";
import { planGarbage } from "../../../../agent/snapshots/store/garbage-plan.ts";
import { checkOrigins, checkSizes, type Manifest, parseManifest } from "../../../../agent/snapshots/store/manifest.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";

const origins = { kernel: "6", architecture: "x86_64", cpuFlags: "sse2 avx", criu: "4.2", runc: "1.1", envd: "0.6" };
const manifest: Manifest = {
  format: 1,
  snapshotId: "s1",
  sandboxId: "i1",
  executionId: "e1",
  kind: "pause",
  memory: true,
  containerId: "c1",
  build,
  resources,
  runtime: "/runtime/1",
  controlToken: "t",
  origins,
  memoryBytes: 5,
  diskBytes: 0,
  createdAt: 1,
  files: [{ name: "pages-1.img", size: 5, sha256: "0".repeat(64), changedAt: 1 }],
};

describe("a manifest", () => {
  test("is read as it was written", () => {
    expect(parseManifest(JSON.stringify(manifest), "s1")).toEqual(manifest);
  });

  test.each([
    { because: "is no JSON", text: "{", code: "snapshot_corrupt" },
    { because: "lacks a field", text: JSON.stringify({ ...manifest, files: undefined }), code: "snapshot_corrupt" },
    {
      because: "is of another snapshot",
      text: JSON.stringify({ ...manifest, snapshotId: "s2" }),
      code: "snapshot_corrupt",
    },
    {
      because: "is of a later format",
      text: JSON.stringify({ ...manifest, format: 2 }),
      code: "snapshot_incompatible",
    },
    {
      because: "names a file elsewhere",
      text: JSON.stringify({ ...manifest, files: [{ ...manifest.files[0], name: "../x" }] }),
      code: "snapshot_corrupt",
    },
  ])("that $because is refused as $code", ({ text, code }) => {
    expect(() => parseManifest(text, "s1")).toThrow(expect.objectContaining({ code }) as Error);
  });

  test.each([
    { because: "another architecture", here: { architecture: "aarch64", cpuFlags: "sse2 avx" } },
    { because: "a processor with less", here: { architecture: "x86_64", cpuFlags: "sse2" } },
  ])("does not fit $because", ({ here }) => {
    expect(() => checkOrigins(manifest, here)).toThrow(
      expect.objectContaining({ code: "snapshot_incompatible" }) as Error,
    );
  });

  test("fits a processor with more", () => {
    checkOrigins(manifest, { architecture: "x86_64", cpuFlags: "avx avx2 sse2" });
  });

  test.each([
    { sizes: [], code: "snapshot_files_missing" },
    { sizes: [["pages-1.img", 4] as const], code: "snapshot_corrupt" },
  ])("is refused when a file is missing or has another size: $code", ({ sizes, code }) => {
    expect(() => checkSizes(manifest, new Map(sizes))).toThrow(expect.objectContaining({ code }) as Error);
  });
});

describe("why a dump failed", () => {
  test.each([
    ["(00.1) Error (criu/image.c:1): No space left on device", "there is no space left", true],
    [
      "(00.1) Error (criu/page-xfer.c:263): page-xfer: Unable to spice data: No space lef",
      "there is no space left",
      true,
    ],
    [
      "(00.1) Dumping task (pid: 1 comm: init)\n(00.2) Dumping task (pid: 12 comm: no\u0007de)\n(00.3) Error (criu/x.c:1): io_uring",
      "a process uses io_uring (process 12, no?de)",
      false,
    ],
    ["(00.1) Error (criu/seize.c:335): zombie 12 (comm x) found while seizing", "a process is being debugged", false],
    [
      "(00.1) Error (criu/fsnotify.c:1): fsnotify: \tCan't dump that handle",
      "a process watches files in a way that cannot be stored",
      false,
    ],
    [
      "(00.1) Dumping task (pid: 12 comm: node)\n(00.2) Warn  (criu/fsnotify.c:1): fsnotify: \tHandle 0x28:0x2000000ff cannot be opened\n(00.3) Error (criu/fsnotify.c:1): fsnotify: \tCan't dump that handle",
      "a process watches files in a way that cannot be stored (process 12, node): the file that `find / -inum 8589934847` shows there",
      false,
    ],
    [
      "(00.1) Error (criu/files.c:1): Can't dump ghost file /home/user/secret of 9 size",
      "a process has a deleted file open that is too large",
      false,
    ],
    [
      "(00.1) Error (criu/files-reg.c:1): Can't link remap to ./srv/link_remap.3: File too large",
      "a process has a file open by a deleted name, and it cannot be given another name",
      false,
    ],
    ["(00.1) Error (criu/x.c:1): something \u0007new", "CRIU says: something ?new", false],
    [
      "(00.1) Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self: x",
      "CRIU ended and did not say why",
      false,
    ],
  ])("%s is explained as: %s", (log, reason, noSpace) => {
    expect(explainDump(log)).toEqual({ reason, noSpace });
  });
});

describe("frozen containers", () => {
  const kept = [
    { id: "young", since: 90, ran: false },
    { id: "old", since: 10, ran: false },
    { id: "older", since: 5, ran: false },
  ];
  const view = { kept, now: 100, keepMs: 1_000, freeMemory: 10, reservedMemory: 5 };

  test("stay while there is time and memory", () => {
    expect(planEviction(view)).toEqual([]);
  });

  test("go oldest first when their time is over", () => {
    expect(planEviction({ ...view, keepMs: 50 })).toEqual(["older", "old"]);
  });

  test("go one by one while memory is short", () => {
    expect(planEviction({ ...view, freeMemory: 4 })).toEqual(["older"]);
  });

  test("stay beyond their time and when memory is short, if their processes have run since their memory was stored", () => {
    const ran = kept.map((one) => ({ ...one, ran: true }));
    expect(planEviction({ ...view, kept: ran, keepMs: 50, freeMemory: 4 })).toEqual([]);
  });
});

describe("snapshots without an owner", () => {
  const disk = {
    containerId: "c1",
    controlToken: "",
    build,
    resources,
    runtime: "",
    upperDirectory: undefined,
    createdAt: 0,
  };
  const image = (snapshotId: string, createdAt = 0) => ({ id: `image of ${snapshotId}`, snapshotId, createdAt });
  const none = new Set<string>();
  const nothing = { rows: [], held: none, containers: none, directories: [], images: [], now: 1_000, graceMs: 100 };

  test("is found when it is old enough", () => {
    const found = planGarbage({
      ...nothing,
      rows: [{ id: "s1", kind: "pause", state: "stored", disk }],
      directories: [
        { id: "s1", changedAt: 0 },
        { id: "s2", changedAt: 0 },
        { id: "s3", changedAt: 950 },
      ],
      images: [image("s1"), image("s2"), image("s3", 950)],
    });
    expect(found).toEqual({ spent: [], directories: ["s2"], images: [image("s2")] });
  });

  test("is nothing that a lost database named, until its time has passed", () => {
    const directories = [
      { id: "s1", changedAt: 0 },
      { id: "s2", changedAt: 0 },
    ];
    const found = planGarbage({ ...nothing, held: new Set(["s1"]), directories, images: [image("s1"), image("s2")] });
    expect(found).toEqual({ spent: [], directories: ["s2"], images: [image("s2")] });
  });

  test("is not the image below the disk of a paused sandbox, whose container Docker may have lost", () => {
    const rows = [
      {
        id: "paused",
        kind: "pause" as const,
        state: "stored" as const,
        disk: { ...disk, build: { ...disk.build, image: "image of s4" } },
      },
    ];
    expect(planGarbage({ ...nothing, rows, images: [image("s4"), image("s5")] }).images).toEqual([image("s5")]);
  });

  test("includes memory of a sandbox that went on and ended, not of one that still runs or is paused", () => {
    const rows = [
      { id: "ended", kind: "pause" as const, state: "spent" as const, disk: { ...disk, containerId: "gone" } },
      { id: "runs", kind: "pause" as const, state: "spent" as const, disk },
      { id: "paused", kind: "pause" as const, state: "stored" as const, disk: { ...disk, containerId: "dead" } },
    ];
    expect(planGarbage({ ...nothing, rows, containers: new Set(["c1"]) }).spent).toEqual(["ended"]);
  });
});
