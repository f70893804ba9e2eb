/** Checks of the machine itself: kernel, disks, files, clock. Pure. */

import { CHECKS, problems } from "../known/checks.mjs";
import type { Check, Found } from "./check.ts";

const MIB = 1024 ** 2;
/** A file system that is as full as that fails what writes to it soon. */
const FULL = 0.95;
/** What a node keeps free by default; below it takes nothing new. */
const SHORT = 0.9;
/** Share of a limit of the kernel at which programs begin to fail. */
const NEAR = 0.9;
const MINUTE_MS = 60_000;

/** What `up` checks before it begins, where it matters later too: free space has a check of its own, the checkout is not needed. */
const OF_UP = new Set(["old-kernel", "cgroups", "memory", "directory-read-only", "programs-noexec"]);

const ofUp = CHECKS.filter(({ when, id }) => when === "machine" && OF_UP.has(id)).map(
  ({ id }): Check => ({
    id: `kernel.${id}`,
    section: "kernel",
    severity: "fails",
    problem: "the machine lacks what the platform needs",
    evidence: ({ machine }) =>
      machine === undefined
        ? undefined
        : problems("machine", machine)
            .filter((one) => one.id === id)
            .map(({ problem, evidence, wayOut }) => ({ evidence: `${problem}: ${evidence}`, fix: wayOut })),
    fix: "run ./scripts/up, which names the way out",
  }),
);

export const machineChecks: readonly Check[] = [
  ...ofUp,
  {
    id: "disks.full",
    section: "disks",
    severity: "fails",
    problem: "a disk of the platform is full",
    evidence: ({ disks }) =>
      disks
        ?.filter(({ freeBytes, totalBytes }) => totalBytes > 0 && 1 - freeBytes / totalBytes >= FULL)
        .map(
          ({ path, holds, freeBytes, totalBytes }) =>
            `${path} (${holds}): ${percent(1 - freeBytes / totalBytes)} used, ${Math.floor(freeBytes / MIB)} MiB free`,
        ),
    fix: "delete what nobody needs: `svc gc --dry-run` lists it; delete no file below /var/lib/svc by hand",
  },
  {
    id: "disks.inodes",
    section: "disks",
    severity: "fails",
    problem: "a disk of the platform has hardly any room for new files",
    evidence: ({ disks }) =>
      disks
        ?.filter(({ freeInodes, totalInodes }) => totalInodes > 0 && 1 - freeInodes / totalInodes >= FULL)
        .map(
          ({ path, holds, freeInodes, totalInodes }) =>
            `${path} (${holds}): ${freeInodes} of ${totalInodes} inodes are free`,
        ),
    fix: "delete small files that nobody needs, or move the directory to a file system with more inodes",
  },
  {
    id: "disks.read-only",
    section: "disks",
    severity: "fails",
    problem: "a disk of the platform is mounted read-only",
    evidence: ({ disks }) =>
      disks
        ?.filter(({ readOnly }) => readOnly)
        .map(({ path, holds, mountPoint }) => `${path} (${holds}), mounted at ${mountPoint}`),
    fix: "look for errors of the disk in the kernel's log (dmesg), repair it, and mount it writable",
  },
  {
    id: "disks.short",
    section: "disks",
    severity: "warns",
    problem: "a disk of the platform is below the room that a node keeps free",
    evidence: ({ disks }) =>
      disks
        ?.filter(({ freeBytes, totalBytes }) => {
          const used = totalBytes > 0 ? 1 - freeBytes / totalBytes : 0;
          return used >= SHORT && used < FULL;
        })
        .map(
          ({ path, holds, freeBytes, totalBytes }) => `${path} (${holds}): ${percent(1 - freeBytes / totalBytes)} used`,
        ),
    fix: "make room, or lower SVC_DISK_RESERVE_MB: docs/operating/disks.md",
  },
  {
    id: "files.missing",
    section: "files",
    severity: "fails",
    problem: "a file with settings or keys of the platform is missing",
    evidence: ({ files }) => files?.filter(({ is }) => is === undefined).map(({ path }) => path),
    fix: "put it back from your backup: new keys would not open what is stored. ./scripts/up makes what nothing depends on",
  },
  {
    id: "files.access",
    section: "files",
    severity: "fails",
    problem: "a file of the platform is open to users who must not read it, or is not its program's",
    evidence: ({ files }) =>
      files?.flatMap(({ path, mode, uid, gid, is }): readonly Found[] => {
        if (is === undefined) return [];
        const wrong = (is.mode & ~mode & 0o777) !== 0 || is.uid !== uid || is.gid !== gid || (is.mode & 0o400) === 0;
        if (!wrong) return [];
        const said = (one: { readonly mode: number; readonly uid: number; readonly gid: number }) =>
          `${one.mode.toString(8).padStart(4, "0")} ${one.uid}:${one.gid}`;
        return [
          {
            evidence: `${path} is ${said(is)} and should be ${said({ mode, uid, gid })}`,
            fix: `chown ${uid}:${gid} ${path} && chmod ${mode.toString(8)} ${path}`,
            mends: { does: "mode", path, mode, uid, gid },
          },
        ];
      }),
    fix: "run ./scripts/up",
  },
  {
    id: "clock.back",
    section: "clock",
    severity: "fails",
    problem: "the clock of this machine is wrong: files of the platform are from the future",
    evidence: ({ clock, at }) =>
      clock === undefined
        ? undefined
        : clock.newest !== undefined && clock.newest.at > at + MINUTE_MS
          ? [`it is ${iso(at)}, and ${clock.newest.path} was written at ${iso(clock.newest.at)}`]
          : [],
    fix: "set the clock, and let chrony or systemd-timesyncd keep it",
  },
  {
    id: "clock.free",
    section: "clock",
    severity: "warns",
    problem: "the service that keeps the clock of this machine has not reached its time servers",
    evidence: ({ clock }) =>
      clock === undefined ? undefined : clock.synchronized === false ? ["timedatectl: NTPSynchronized=no"] : [],
    fix: "timedatectl timesync-status says why; certificates and timeouts depend on the clock",
  },
  {
    id: "kernel.devices",
    section: "kernel",
    severity: "warns",
    problem: "the kernel lacks a device that sandboxes use",
    evidence: ({ kernel }) =>
      kernel?.devices
        .filter(({ is }) => !is)
        .map(({ path, module }) => ({
          evidence: path,
          fix: `modprobe ${module}`,
          mends: { does: "module", name: module },
        })),
    fix: "load the kernel's module",
  },
  {
    id: "kernel.limits",
    section: "kernel",
    severity: "warns",
    problem: "a limit of the kernel, which all programs of the machine share, is nearly used up",
    evidence: ({ kernel }) =>
      kernel?.limits
        .filter(({ used, max }) => max > 0 && used / max >= NEAR)
        .map(({ name, used, max }) => `${name}: ${used} of ${max}`),
    fix: "docs/operating/limits.md: end what takes it, or raise the limit",
  },
];

function percent(share: number): string {
  return `${Math.floor(share * 100)} %`;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
