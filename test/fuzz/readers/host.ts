/** Fuzzes the readers of text from the host's own programs that sandboxes can influence: nft, CRIU, stored manifests. */

import { type LastRead, readFlows, readUnlogged } from "../../../agent/network/kernel-flows.ts";
import { readSets } from "../../../agent/network/nft/nft-json.ts";
import { missingElements } from "../../../agent/network/table-check.ts";
import { explainDump } from "../../../agent/snapshots/criu/dump-log.ts";
import { explainRestore } from "../../../agent/snapshots/restore/reason.ts";
import { MANIFEST_FORMAT, parseManifest } from "../../../agent/snapshots/store/manifest.ts";
import { must, type Reader, unlessRefused } from "../reader.ts";

const nftSet = (name: string, elem: readonly unknown[]) => ({ set: { family: "inet", table: "svc", name, elem } });
const nftAnswer = (...sets: readonly unknown[]) => JSON.stringify({ nftables: [{ metainfo: {} }, ...sets] });
const counted = (val: unknown, packets: number) => ({ elem: { val, expires: 9, counter: { packets, bytes: 120 } } });

const FLOWS = [
  nftAnswer(
    nftSet("granted", [
      counted({ concat: ["10.213.0.2", "203.0.113.7", "tcp", 80] }, 3),
      counted({ concat: ["10.213.0.3", "203.0.113.8", "udp", 53] }, 1),
    ]),
  ),
  nftAnswer(nftSet("granted", [counted({ concat: ["10.213.0.2", "203.0.113.7", "tcp", 80] }, 0)])),
];
const UNLOGGED = [nftAnswer(nftSet("unlogged", [counted("10.213.0.2", 12)]))];
const SETS = [
  nftAnswer(
    nftSet("pinned", [{ concat: ["svc-4", "10.213.0.4"] }, { concat: ["svc-5", "10.213.0.5"] }]),
    nftSet("allowed", [
      { concat: ["10.213.0.4", { prefix: { addr: "203.0.113.0", len: 24 } }] },
      { concat: ["10.213.0.4", { range: ["1.0.0.0", "2.0.0.2"] }] },
    ]),
  ),
];
const NFT_WORDS = [
  '{"set":',
  '"elem":',
  '"concat":',
  '"prefix":',
  '"range":',
  "[",
  "]",
  "{",
  "}",
  "null",
  "-1",
  "1e99",
  '"',
];

const DUMPS = [
  "(00.000100) Error (criu/files.c:1): Can't dump file 5 of type 1\n(00.1) Error (criu/cr-dump.c:2): Dumping FAILED.\n",
  "(00.01) Error (criu/sk-inet.c:3): Connected TCP socket, consider using --tcp-established option.\n",
  "(00.01) Error (criu/x.c:9): \u001b[31msomething of the sandbox's own: /home/user/\u0000secret\n",
  "(00.01) Warn  (criu/x.c:9): rlimit: Can't setup RLIMIT_NOFILE for self\n",
];
const RESTORES = [
  "svc-runc: restore from /var/lib/x failed: Can't link tmp/h/owned.cr.1.ghost -> tmp/h/owned: File exists (/tmp/h/owned)",
  'OCI runtime create failed: svc-runc: restore from /x failed: File /srv/\u0000a"b has bad size 12 (expect 13)\nmore',
  "svc-runc: restore from /x failed: Can't open file /home/user/log on restore: No such file",
  "svc-runc: restore from /x failed: \u001b[31mno space\u001b[0m: No space left on device",
];
const REASON_CHARACTERS = 230;

const MANIFEST = JSON.stringify({
  format: MANIFEST_FORMAT,
  snapshotId: "s",
  sandboxId: "i",
  executionId: "e",
  kind: "pause",
  memory: true,
  containerId: "c",
  build: { templateId: "t", buildId: "b", image: "svc/base" },
  resources: { cpuCount: 1, memoryMB: 512, diskSizeMB: 1024 },
  runtime: "r",
  controlToken: "k",
  origins: { kernel: "6", architecture: "x86_64", cpuFlags: "fpu vme", criu: "4", runc: "1", envd: "v" },
  memoryBytes: 1,
  diskBytes: 1,
  createdAt: 1,
  files: [{ name: "pages-1.img", size: 1, sha256: "0".repeat(64), changedAt: 1 }],
});

export const host: readonly Reader[] = [
  {
    name: "nft-flows",
    promise: "never throws; counts are whole and positive, and nothing is reported twice",
    seeds: () => FLOWS,
    words: NFT_WORDS,
    share: 40_000,
    check(input) {
      const text = input.toString("latin1");
      const lastReads = new Map<string, LastRead>();
      const flows = readFlows([["granted", text]], lastReads);
      must(lastReads.size <= text.length / 10, "it remembers more than there is");
      must(
        flows.every(({ count }) => Number.isSafeInteger(count) && count > 0),
        "a flow has no packets",
      );
      // A set has each key only once, but mutations make texts that have a key twice.
      if (lastReads.size === (readSets(text).get("granted") ?? []).length)
        must(readFlows([["granted", text]], lastReads).length === 0, "a flow that was reported is reported again");
    },
  },
  {
    name: "nft-unlogged",
    promise: "never throws; counts are positive",
    seeds: () => UNLOGGED,
    words: NFT_WORDS,
    share: 40_000,
    check(input) {
      const unlogged = readUnlogged(input.toString("latin1"), new Map());
      must(
        [...unlogged.values()].every((count) => count > 0),
        "a source without packets is reported",
      );
    },
  },
  {
    name: "nft-sets",
    promise: "never throws; a table that is not there, or holds foreign entries, lacks elements",
    seeds: () => SETS,
    words: NFT_WORDS,
    share: 40_000,
    check(input) {
      const text = input.toString("latin1");
      const missing = missingElements(text, []);
      if (!text.includes('"pinned"')) must(missing !== false, "a table without its sets is whole");
    },
  },
  {
    name: "criu-log",
    promise: "never throws; the reason is short and printable, for any log",
    seeds: () => DUMPS,
    words: ["Error (", "Error ", "): ", "\n", "No space", "inotify", "\u001b[2J", "\0", "\u202e"],
    share: 40_000,
    check(input) {
      const { reason } = explainDump(input.toString("utf8"));
      must(reason.length <= REASON_CHARACTERS, `the reason has ${reason.length} characters`);
      must(/^[\x20-\x7e]+$/.test(reason), "the reason is not printable");
    },
  },
  {
    name: "criu-restore-log",
    promise: "never throws; the reason is short and printable, for any complaint of svc-runc",
    seeds: () => RESTORES,
    words: [
      "svc-runc: restore from /x failed: ",
      "ghost",
      "Can't link ",
      "File ",
      " has bad size",
      " -> ",
      "(/",
      ")",
      ": ",
      "\u001b[2J",
      "\0",
    ],
    share: 40_000,
    check(input) {
      const reason = explainRestore(new Error("could not start", { cause: new Error(input.toString("utf8")) }));
      must(reason.length <= REASON_CHARACTERS, `the reason has ${reason.length} characters`);
      must(/^[\x20-\x7e]+$/.test(reason), "the reason is not printable");
    },
  },
  {
    name: "snapshot-manifest",
    promise: "throws its own errors only; a file of it is a file in the snapshot's directory",
    seeds: () => [MANIFEST, MANIFEST.replace("pages-1.img", "..")],
    words: ["..", "/", ".", "null", "{", "}", "[", "]", '"', "\\u0000", "-", "1e999", '"__proto__":'],
    share: 20_000,
    check(input) {
      const refusals = ["snapshot_corrupt", "snapshot_incompatible"] as const;
      const manifest = unlessRefused(refusals, () => parseManifest(input.toString("utf8"), "s"));
      for (const { name } of manifest?.files ?? [])
        must(!name.includes("/") && name !== "." && name !== "..", `the manifest names '${name}'`);
    },
  },
];
