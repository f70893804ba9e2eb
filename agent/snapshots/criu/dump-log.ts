/** The reason why CRIU could not dump a sandbox, in words for the caller. Pure. */

const MAX_CHARACTERS = 200;

const WATCHES = "a process watches files in a way that cannot be stored";

/** CRIU's texts and their meaning. The first match counts; specific ones come first. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  // The log is on the full disk itself, so its last line may be cut anywhere.
  [/No space|Disk quota/, "there is no space left"],
  [/io_uring/i, "a process uses io_uring"],
  [/Can't dump that handle|inotify|fsnotify/i, WATCHES],
  [/userfaultfd/i, "a process handles its own page faults (userfaultfd)"],
  [/bpf/i, "a process uses BPF"],
  [/perf_event/i, "a process uses performance counters"],
  [/[Cc]onnected TCP socket|tcp.*(established|in flight)/, "a TCP connection cannot be stored"],
  [/External socket is used|unix.*(external|peer)/i, "a process talks to a socket outside of the sandbox"],
  [/Can't (find|dump).*(deleted|unlinked|ghost)|ghost file/i, "a process has a deleted file open that is too large"],
  [
    /zombie .* found while seizing|already (being )?traced|ptrace.*(EPERM|Operation not permitted)|seize.*failed/i,
    "a process is being debugged",
  ],
  [
    /Unsupported.*(socket|protocol|family)|Unknown socket collected/i,
    "a process has a socket of a kind that cannot be stored",
  ],
  [/netlink: .*(data to read|netlink socket)/, "a process has a netlink socket with messages that it has not read yet"],
  [
    /Control messages in queue|More than 1 SCM|2nd SCM_RIGHTS/,
    "a process has not read a message with open files or an identity on a Unix socket yet",
  ],
  [
    /session leader of .* is outside of its pid namespace/i,
    "a process was started from outside of the sandbox, as docker exec does",
  ],
  [
    /ctty inheritance|dangling tty|slave peer index .* without/,
    "a process uses a terminal whose other end is closed or outside of the sandbox",
  ],
  [
    /[Uu]nsupported file|Can't dump file|Can't open.*fd|Unknown file/,
    "a process has a file open of a kind that cannot be stored",
  ],
  [/Can't (link|note link) remap/, "a process has a file open by a deleted name, and it cannot be given another name"],
  [
    /Timeout reached|Unseizable non-zombie|Unable to freeze cgroup/,
    "a process did not stand still in time, as while it waits for a slow disk",
  ],
  [/Cannot allocate memory|Out of memory/, "there is no memory left for it, in the sandbox or on its node"],
  // By CRIU's own files and texts: a path in a text may have such a word (package-lock.json).
  [/\(criu\/file-lock\.c|[Ff]ile locks? (are|failed)/, "a file lock cannot be stored"],
  [/\(criu\/mount|\bmnt: |lookup mount|overmounted mounts|mount namespace/, "a mount cannot be stored"],
];

/** How CRIU names the process that it dumps next, by its id and name inside the sandbox. */
const TASK = /Dumping task \(pid: (\d+) comm: (.{1,16}?)\)/;

/** A device and an inode. */
const WATCHED = /fsnotify: \tHandle 0x[0-9a-f]{1,16}:(0x[0-9a-f]{1,16}) cannot be opened/;

export interface DumpFailure {
  readonly reason: string;
  readonly noSpace: boolean;
}

/** `log` is CRIU's log, which names files of the sandbox, so only the kind of failure is returned. */
export function explainDump(log: string): DumpFailure {
  const lines = log.split("\n");
  const errors = lines.filter(isError);
  for (const [pattern, reason] of REASONS) {
    if (!errors.some((line) => pattern.test(line))) continue;
    const named = reason.startsWith("a process") ? processIn(lines) : "";
    const watched = reason === WATCHES ? watchedIn(lines) : "";
    return { reason: `${reason}${named}${watched}`, noSpace: reason === REASONS[0]?.[1] };
  }
  const first = errors[0]?.replace(/^.*?Error \([^)]*\):\s*/, "").replace(/[^\x20-\x7e]/g, "?");
  return {
    reason: first === undefined ? "CRIU ended and did not say why" : `CRIU says: ${first.slice(0, MAX_CHARACTERS)}`,
    noSpace: false,
  };
}

/** The error of a pause, fork or snapshot names the reason and the way out. */
export function memoryNotStored(reason: string): string {
  return `the sandbox's memory cannot be stored: ${reason}; memory: false keeps its disk alone; it goes on running`;
}

function isError(line: string): boolean {
  return line.includes("Error ") && !line.includes("rlimit: Can't setup RLIMIT_NOFILE");
}

/** The process that CRIU was at when the first error came; empty before the first one. */
function processIn(lines: readonly string[]): string {
  const before = lines.slice(0, lines.findIndex(isError));
  const [, id, name] = before.map((line) => TASK.exec(line)).findLast((found) => found !== null) ?? [];
  return id === undefined || name === undefined ? "" : describeProcess(id, name);
}

/** The watched file that CRIU was at when the first error came, by its number, which leads to its name inside the sandbox. */
function watchedIn(lines: readonly string[]): string {
  const before = lines.slice(0, lines.findIndex(isError));
  const [, inode] = before.map((line) => WATCHED.exec(line)).findLast((found) => found !== null) ?? [];
  return inode === undefined ? "" : `: the file that \`find / -inum ${BigInt(inode)}\` shows there`;
}

/** @param name chosen by the sandbox */
export function describeProcess(id: string | number, name: string): string {
  return ` (process ${id}, ${name.replace(/[^\x21-\x7e]/g, "?")})`;
}
