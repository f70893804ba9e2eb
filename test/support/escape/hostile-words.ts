/**
 * The attacks of a hostile sandbox and a hostile template, as words for a shell and steps of a build. All follows from the
 * seed.
 */

import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import type { BuildStep } from "../../../shared/agent-api/build-shapes.ts";

/** The directories in and below which CRIU looks for watched files, if they exist. */
const SEARCHED = ["/app", "/code", "/workspace", "/srv", "/opt", "/var/tmp", "/home/other"];

const pickFrom = (canaries: readonly string[], number: number) => canaries[number % canaries.length] ?? "";
const linked = (place: string, canary: string) => `ln -s ${canary} ${place}`;

/**
 * The seeds when the caller gives no number: they cover each way of running (seed modulo six) and each further hostile part
 * (seed divided by six).
 */
const DEFAULT_SEEDS = [1, 2, 3, 4, 5, 6, 7, 14, 21];

/** The hostile sandboxes that a test tries: so many from `first` on, or a few that have one of every kind. */
export function seedsOf(count: string | undefined, first: string | undefined): number[] {
  if (count === undefined) return [...DEFAULT_SEEDS];
  return Array.from({ length: Number(count) }, (_, index) => Number(first ?? 1) + index);
}

/** A shell condition that holds when all attacks are done. */
export const READY = "[ -e /ready ]";

/**
 * A script that runs /hostile and then replaces more directories. Some of them need what a sandbox has and the program does
 * not: the directories that CRIU searches for watched files, that of a running program, that of a shell's open script.
 */
export function hostileScript(seed: number, process: string, canaries: readonly string[]): string {
  const canary = (number: number) => pickFrom(canaries, seed * 7 + number);
  const more: readonly (readonly string[])[] = [
    [],
    [
      "mkdir /watched && touch /watched/owned",
      `python3 -c "${WATCH}" & until [ -e /watching ]; do sleep 0.02; done`,
      `rm -r /watched; ${linked("/watched", canary(0))}`,
      ...SEARCHED.map((place, index) => `rm -rf ${place}; ${linked(place, canary(index))}`),
    ],
    [
      "mkdir /program && cp /bin/sleep /program/owned && chmod 4755 /program/owned",
      "/program/owned 1000000 & until grep -qs ^owned /proc/$!/comm; do sleep 0.02; done",
      `rm -r /program; ${linked("/program", canary(1))}`,
    ],
    [
      "mkdir -p /script/deep && printf 'touch /reading; read line <&9' > /script/deep/owned && mkfifo /script/wait",
      "exec 9<>/script/wait; bash /script/deep/owned & until [ -e /reading ]; do sleep 0.02; done",
      `mv /script /script.away; mkdir /script; ${linked("/script/deep", `/proc/${process}/root${canary(2)}`)}`,
    ],
  ];
  const start = `/hostile ${seed} ${process} ${canaries.join(" ")} & hostile=$!`;
  const waiting = "until [ -e /done ]; do kill -0 $hostile || exit 1; sleep 0.02; done";
  const chosen = more[Math.floor(seed / 6) % more.length] ?? [];
  return ["cd /", start, waiting, ...chosen, "touch /ready", "wait"].join("\n");
}

const WATCH = [
  "import ctypes,time",
  "c=ctypes.CDLL(None)",
  "c.inotify_add_watch(c.inotify_init(),b'/watched/owned',4095)",
  "open('/watching','w').close()",
  "time.sleep(1e6)",
].join(";");

async function archived(entries: readonly (Partial<Header> & { name: string; content?: string })[]): Promise<Buffer> {
  const made = pack();
  for (const { content, ...header } of entries) made.entry(header, content ?? "");
  made.finalize();
  return gzipSync(await buffer(made));
}

/** Steps that copy through links to the canaries, and archives of links; `give` hands an archive to the agent. */
export async function hostileSteps(
  seed: number,
  process: string,
  canaries: readonly string[],
  give: (archive: Buffer) => string,
): Promise<BuildStep[]> {
  const canary = (number: number) => pickFrom(canaries, seed * 11 + number);
  const there = (seed & 1) === 1 ? `mkdir -p ${canaries.join(" ")} && touch ${canary(2)}/decoy` : "true";
  const prepare = [
    "mkdir /links",
    linked("/links/directory", canary(0)),
    linked("/links/relative", `../../../../../..${canary(1)}`),
    linked("/links/file", `${canary(2)}/decoy`),
    linked("/links/process", `/proc/${process}/root${canary(3)}`),
    there,
  ].join(" && ");
  const file = give(await archived([{ name: "owned", mode: 0o4755, content: `seed ${seed}` }]));
  const links = give(
    await archived([
      { name: "tree", type: "directory" },
      { name: "tree/link", type: "symlink", linkname: "over/there" },
      { name: "tree/owned", mode: 0o6755, content: `seed ${seed}` },
    ]),
  );
  const targets = ["/links/directory/", "/links/relative/", "/links/file", "/links/process/", "/links/directory/deep/"];
  const target = targets[Math.floor(seed / 6) % targets.length] ?? "";
  const given = { force: false, user: "root" };
  return [
    { type: "RUN", number: 1, ...given, command: prepare },
    { type: "COPY", number: 2, ...given, source: "owned", destination: target, filesHash: file, mode: "4755" },
    { type: "COPY", number: 3, ...given, source: "tree", destination: target, filesHash: links },
  ];
}
