// The known holes of runc and of the kernel that a sandbox could use and that no part of the platform blocks, as data, and the
// function that finds those of a machine. Pure. SECURITY.md explains the table.

// `fixed`: the first version without the hole in each line of versions, oldest line first. A version of another line has
// the hole when it is older than the fix of the oldest listed line, or between two lines. `since`: the first version with
// the hole, where that is not the first of all.
const HOLES = [
  {
    program: "runc",
    id: "CVE-2019-5736",
    what: "a process in a container can overwrite runc on the host",
    fixed: ["1.0.0-rc.7"],
  },
  {
    program: "runc",
    id: "CVE-2024-21626",
    what: "an image can start its process in a directory of the host",
    fixed: ["1.1.12"],
  },
  {
    program: "runc",
    id: "CVE-2025-31133",
    what: "an image can have a file of the host's /proc in the place of a masked path",
    fixed: ["1.2.8", "1.3.3", "1.4.0-rc.3"],
  },
  {
    program: "runc",
    id: "CVE-2025-52565",
    what: "an image can have a file of the host's /proc in the place of /dev/console",
    fixed: ["1.2.8", "1.3.3", "1.4.0-rc.3"],
  },
  {
    program: "runc",
    id: "CVE-2025-52881",
    what: "an image can send runc's writes to other files of /proc",
    fixed: ["1.2.8", "1.3.3", "1.4.0-rc.3"],
  },
  {
    program: "kernel",
    id: "CVE-2022-0847",
    what: "any process can write to files that it may only read, those of other sandboxes' images too (Dirty Pipe)",
    since: "5.8",
    fixed: ["5.10.102", "5.15.25", "5.16.11"],
  },
  {
    program: "kernel",
    id: "CVE-2023-3269",
    what: "any process can become root of the host through its own memory map (StackRot)",
    since: "6.1",
    fixed: ["6.1.37", "6.3.11", "6.4.1"],
  },
];

export const WAYS_OUT = {
  runc: "install the newest runc of the distribution, or one from its authors; running sandboxes are not disturbed",
  kernel: "install the newest kernel of the distribution and restart the machine",
};

/** Parts of `1.1.5+ds1`, `1.0.0-rc6`, `6.1.0` as numbers; a candidate comes before its version. */
function parts(version) {
  const [, numbers = "", candidate] = /^v?(\d+(?:\.\d+)*)(?:[-~.]?rc[.]?(\d+))?/.exec(version) ?? [];
  const [major = 0, minor = 0, patch = 0] = numbers.split(".").map(Number);
  return [major, minor, patch, candidate === undefined ? Number.POSITIVE_INFINITY : Number(candidate)];
}

function compare(one, other) {
  const [a, b] = [parts(one), parts(other)];
  const at = a.findIndex((part, i) => part !== b[i]);
  return at < 0 ? 0 : a[at] < b[at] ? -1 : 1;
}

function hasHole({ since, fixed }, version) {
  if (since !== undefined && compare(version, since) < 0) return false;
  const line = (text) => parts(text).slice(0, 2).join(".");
  const own = fixed.find((text) => line(text) === line(version));
  return compare(version, own ?? fixed.at(-1)) < 0;
}

/**
 * The upstream version of the kernel. Debian shows it beside the release (`Debian 6.1.76-1`). Distributions that number
 * their kernels differently (`5.15.0-91-generic`, `4.18.0-513.el8`) do not: no hole is reported for them.
 */
function kernelVersion({ release, build }) {
  const debian = /Debian (\d+\.\d+\.\d+)/.exec(build)?.[1];
  if (debian !== undefined) return debian;
  return /^\d+\.\d+\.0-\d|\.el\d|\.fc\d|-generic|\.amzn/.test(release) ? undefined : release;
}

/** @param facts versions of runc and the kernel, and the changelog of runc's package */
export function known(facts) {
  return HOLES.filter((hole) => {
    const version = hole.program === "kernel" ? kernelVersion(facts.kernel) : facts.runc.version;
    // Distributions fix a hole without a new version of the program; their changelog lists the fix.
    if (version === undefined || (hole.program === "runc" && facts.runc.changes.includes(hole.id))) return false;
    return /^v?\d/.test(version) && hasHole(hole, version);
  });
}
