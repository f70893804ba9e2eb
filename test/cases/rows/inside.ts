/** Cases of the section. Columns: see ../table.ts. */
export const inside: Readonly<Record<string, string>> = {
  "renames of directories that came with the template": `
git mv src lib in a repository of the template | "Invalid cross-device link" => rename(2), called by os.rename, moves three directories of the image; the old name is gone, and the files are the same | snapshots/renamed-directories.test.ts | renamed directories of the template stay whole in pauses
fs.rename, os.rename | EXDEV => the same: no error, and content, owners and modes are those of before | snapshots/renamed-directories.test.ts | renamed directories of the template stay whole in pauses
a package manager that replaces a directory and has no way round EXDEV | failed => the same; a file is made and one is removed below the new name | snapshots/renamed-directories.test.ts | renamed directories of the template stay whole in pauses
a pause and a resume from the disk after the rename | not possible => restored from memory with the same sum of files, and a process stands in the renamed directory as before | snapshots/renamed-directories.test.ts | stay whole in pauses, copies, copies of copies
a fork, a snapshot, and a snapshot of a snapshot after it | not possible => the copies have the same sum, what a copy renames further is in its own copy, and the source keeps its names | snapshots/renamed-directories.test.ts | stay whole in pauses, copies, copies of copies
a cold boot after it | not possible => booted from the disk alone with the same sum of files | snapshots/renamed-directories.test.ts | boots from the disk
flattening: a template on a snapshot with renamed directories | not possible => the build succeeds, and its sandbox has the same sum | snapshots/renamed-directories.test.ts | built on a snapshot has the renamed directories whole
root inside sets trusted.overlay.redirect, opaque or metacopy on a directory | not looked at => EPERM, EOPNOTSUPP or EACCES for each, and a boot from the disk lists what was there before | snapshots/renamed-directories.test.ts | cannot write the overlay's notes
sibling: one directory renamed twice, one in a renamed one, one to another level of the tree | EXDEV => all are whole under their last names, also in copies | snapshots/renamed-directories.test.ts | renamed directories of the template stay whole in pauses
sibling: a copy gives the directory its first name again | not tried => the first name alone is there, in the copy and in the copy of it | snapshots/renamed-directories.test.ts | renamed directories of the template stay whole in pauses
sibling: a build step with mv of a directory of its base | not tried => the template's sandboxes have every file under the new name | snapshots/renamed-directories.test.ts | a step of a build that renames
sibling: a layer of an image brings an overlay note with .., a link, /proc/1/root or a directory of the host | not tried => it leads to files of the image or to an error, never to the host | snapshots/renamed-directories.test.ts | a note in a layer that an image brings
sibling: user.overlay.redirect on a directory | not tried => it means nothing: the directory has its own files after a boot from the disk | snapshots/renamed-directories.test.ts | names of attributes that look like them mean nothing
`,
  "walks over paths without an end": `
ln -s /nonexist dl; files.write("dl/a/f", "x") | no answer, and a core was taken for the sandbox's life => refused within 20 s, naming the link to nothing | integration/envd/filesystem/odd-paths.test.ts | a link to nothing
a call whose client leaves in the middle of its walk | the walk went on => a removal of 1 640 directories ends as cancelled, and a second one finishes | integration/envd/filesystem/odd-paths.test.ts | a call that the client leaves stops its walk
sibling: makeDir, compose and move below the same link | no answer => each is refused, naming the link to nothing | integration/envd/filesystem/odd-paths.test.ts | a link to nothing, deep
sibling: ln -s self self; ln -s b a; ln -s c b; ln -s a c, then a write below | no answer => refused: "cycle of symbolic links" | integration/envd/filesystem/odd-paths.test.ts | a circle of links
sibling: a write below /proc/made/up | no answer => refused: it takes no new entries, or permission denied | integration/envd/filesystem/odd-paths.test.ts | /proc, which takes no directories
sibling: a write to a link whose target is in a directory that is missing | not tried => 404, and no directory is made | integration/envd/filesystem/odd-paths.test.ts | a link to a file in a directory that is missing
sibling: circles and dead ends in a directory that is listed nine levels deep and removed | not tried => listed as three links, and removed | integration/envd/filesystem/odd-paths.test.ts | circles and dead ends are listed and removed
sibling: a directory moved into a file system that is mounted inside of it | the copy had no end => refused: the destination is inside the source; nothing is left in the mount, and the source is whole | integration/envd/filesystem/odd-paths.test.ts | into a file system that is mounted inside of it
sibling: a tree of 600 levels that is deeper than a path can be long | not tried => removed | integration/envd/filesystem/odd-paths.test.ts | of a tree that is deeper than a path can be long
`,
  "readers that do not read": `
a client that follows a command and reads nothing, beside another one | the process and its other readers stood still for ever => the command ends with 0, the other reader has all 12 MB, the idle one is dropped: "took no output for 30 s", connect again | integration/envd/process/stalled-readers.test.ts | a command goes on without a stalled reader
the same at a terminal | stood still for ever => the program in it finishes, and the reader hears "the process runs on" | integration/envd/process/stalled-readers.test.ts | a program in a terminal goes on without a stalled reader
a reader that is only slow | slowed the process down, which is right => 8 MB arrive whole, with exit code 0 | integration/envd/process/stalled-readers.test.ts | a reader that is slow gets every byte
sibling: the only follower of a command reads nothing, over gRPC-Web | stood still for ever => the command ends, and grpc-message has the reason | integration/envd/process/stalled-readers.test.ts | a command that only a stalled reader follows
sibling: a reader that takes one chunk just before each 30 s are over | not tried => it stays | unit/envd/process/subscription.test.ts | stays for as long as it takes a little
sibling: a full queue whose process is over, or that is read again in time | not tried => the reader is not dropped | unit/envd/process/subscription.test.ts | has all the time when its queue is no longer full
sibling: a program that does not read its terminal, with half a megabyte typed | not tried => other terminals answer meanwhile | integration/envd/process/terminals.test.ts | a program that does not read does not hold up others
sibling: a process that does not read its stdin, with 1 MB sent | not tried => the call waits until the process ends, then fails; envd answers others | integration/envd/hardening.test.ts | input for a process that does not read
`,
  "paths that name no entry": `
files.remove("") | the home directory was removed => refused: "the path is empty", as rm says; the home is whole | integration/envd/filesystem/odd-paths.test.ts | is neither removed, moved nor replaced
sibling: files.rename("", "x") and files.rename("x", "") | the home directory was moved => refused with the same sentence | integration/envd/filesystem/odd-paths.test.ts | is neither removed, moved nor replaced
sibling: ".", "..", "./", "d/." and "~/." removed, moved and replaced | the directory was removed, ".." with the homes of all users => refused, as rm and rename refuse them | integration/envd/filesystem/odd-paths.test.ts | is neither removed, moved nor replaced
sibling: entries that are called "...", ".d", "x." and "..y" | not tried => removed | integration/envd/filesystem/odd-paths.test.ts | names of dots that are entries are removed
`,
  "characters of several bytes": `
300 kB of 中文字符🚀 from a command, read by a client that decodes each message | broken characters where messages were cut => every character is whole | integration/envd/process/processes.test.ts | no message of output cuts a character
a backspace after 中 while read waits in a terminal | one byte of three was erased, and the line kept the others => the character is erased | integration/envd/process/terminals.test.ts | takes back a whole character
sibling: a character that a program writes in two halves | two broken characters => one message has it whole | integration/envd/process/processes.test.ts | no message of output cuts a character
sibling: half a character whose rest never comes, or at the end of the output | not tried => delivered after 50 ms, or at once with the end | unit/envd/process/whole-characters.test.ts | the beginning of a character
sibling: bytes that are no text | not tried => every byte in order, in messages of legal size | unit/envd/process/whole-characters.test.ts | have every byte in order
sibling: a directory called 名 85 times is moved to another file system | "is too long" => moved | integration/envd/filesystem/filesystem.test.ts | what has a name as long as names may be
`,
  "names that are not UTF-8": `
touch $'d/\\xe9', then a list of d | left out in silence => listed with U+FFFD and "e9" in its name; the written form reads that file, and names that look alike lead to theirs | integration/envd/filesystem/odd-names.test.ts | a listing has every name, in order
files.remove("d") | failed half way with "internal error" each time => a directory with such names is removed whole | integration/envd/filesystem/odd-names.test.ts | a third of them not UTF-8, are listed and removed
a watch of a directory with such names in it | left out => create events by the names of the listing, in old and new directories | integration/envd/filesystem/odd-names.test.ts | are watched by the names of the listing
files.write to such a name | another file was written => by its written form that very file has the new content, and its directory has no further one | integration/envd/filesystem/odd-names.test.ts | a file is written by it, and no other
sibling: a name whose text is U+FFFD and "e9", beside the byte e9 | not tried => two entries with two written forms, each of which leads to its own file | integration/envd/filesystem/odd-names.test.ts | a listing has every name, in order
sibling: sequences that are cut short or overlong, and half of a pair of surrogates | not tried => one written form for each, which leads back to the same bytes | unit/envd/system/file-names.test.ts | and lead back
sibling: an upload to ?path=b%E9 | another file was written => the file of these bytes is written and read | integration/envd/filesystem/odd-names.test.ts | percent-encoded writes and reads the file of that name
sibling: a form whose filename has the byte e9 | another file was written => the file of these bytes is written, and the answer names its written form | integration/envd/filesystem/odd-names.test.ts | in the names of a form writes the files of those names
sibling: such bytes, or half of a pair of surrogates, in JSON | not tried => 400, and nothing is written | integration/envd/filesystem/odd-names.test.ts | in JSON is refused, and writes nothing
sibling: a tree with such names is moved, and a directory is made below it | not tried => done, by the bytes | integration/envd/filesystem/odd-names.test.ts | a tree is moved and removed, and a directory is made below it
sibling: a command with such a working directory | not tried => it runs there | integration/envd/filesystem/odd-names.test.ts | a command works in the directory
sibling: ?path=what?now?.txt, not encoded | another file was written => the question marks are letters of the name | integration/envd/files/uploads.test.ts | question marks in a path that a client has not encoded
`,
  "errors of file calls": `
files.remove of a directory that is being written to | "internal error" in 15 of 20 calls => in ten rounds done, or refused with "programs write into it" | integration/envd/filesystem/odd-paths.test.ts | of a directory that programs write into
errno of every file call | some were "internal error" => each errno of the system has a sentence with the path, or names the room that is missing | unit/envd/system/errno.test.ts | says why, and where
files.remove("/proc/uptime") as root | said done => permission_denied, naming the path | integration/envd/filesystem/odd-paths.test.ts | of what the kernel does not let go says so
sibling: files.remove of /sys/kernel/mm and /proc/self/status as root | said done => permission_denied, naming the path | integration/envd/filesystem/odd-paths.test.ts | of what the kernel does not let go says so
sibling: EBUSY, ENOTEMPTY, EXDEV, EMLINK, ESTALE and others that file calls of Linux answer | some were 500 => never 500 | unit/envd/system/errno.test.ts | is the caller's matter and not a fault of the platform
sibling: a download of /proc/self/mem, which cannot be read to its end | not tried => 400, naming the path | integration/envd/filesystem/odd-paths.test.ts | a file that cannot be read to its end answers
sibling: an upload to a full disk, as bytes and as a form | not tried => 507 on a connection that works on | integration/envd/files/uploads.test.ts | a full disk is reported as such on a connection
sibling: / moved, replaced and removed | no refusal of its own => refused: "'/' is the root directory"; the file that was to replace it is whole | integration/envd/filesystem/odd-paths.test.ts | the root directory is neither moved
`,
  "random numbers in copies": `
random and ssl.RAND_bytes of a Python program in forks | the same numbers in all copies => with the documented example each copy draws its own, and a generator that it leaves out draws the same, as the page says | snapshots/copies/copied-randomness.test.ts | the example of the documentation draws numbers of its own
crypto.randomUUID() of a Node program, and $RANDOM of bash, in forks | the same numbers, and nothing to see it by => documented; /run/svc/execution-id has the id of the execution, another one in each copy and after a resume | snapshots/copies/copied-randomness.test.ts | the file with the execution's id changed
a program that holds the signal's file open | no such file => its content changes in place, with the same inode | integration/envd/access.test.ts | the file with the execution's id changes in place
BoringSSL, whose pages are marked wipe-on-fork | copied into the copies => such pages are empty in two copies and after a resume from the disk, other pages are whole, and the source keeps its own | snapshots/copies/copied-randomness.test.ts | find pages of wipe-on-fork empty
random, numpy, ssl.RAND_bytes, crypto functions and $RANDOM of the code interpreter after a pause, in a fork and of a snapshot | the same numbers, where the page promised otherwise => different ones in all three, and no variable is lost | conformance/programs/code-interpreter-life.test.ts | variables live over pause, fork and snapshot
two sandboxes of a template with a start command, the code interpreter | the same numbers => different ones | conformance/programs/code-interpreter-life.test.ts | two new sandboxes draw different random numbers
a kernel's first line in a copy | drew the same numbers => kernels are seeded before they run a line, once after each start, resume and fork | integration/interpreter/executing.test.ts | random numbers are seeded again after each start
sibling: a wipe-on-fork page that is locked in memory | not tried => empty in a copy too, by the advice for locked pages | unit/agent/snapshots/wipe-on-fork.test.ts | locked ones by the advice for those
sibling: const { random } = Math kept by a program before the copy | not tried => what it kept goes on with other numbers, and a program's own Math.random stays | integration/interpreter/executing.test.ts | random numbers are seeded again after each start
sibling: generateKeyPairSync("ed25519") in JavaScript kernels of copies | not tried => different keys | conformance/programs/code-interpreter-life.test.ts | with variables and random numbers of their own
sibling: copies under an envd of before the execution's id | not seeded => seeded, by the sandbox's id | integration/interpreter/executing.test.ts | random numbers are seeded again after each start
sibling: names that envd itself draws, for watchers | not tried => different in three copies | snapshots/agent-pause.test.ts | copies have its memory and files, but nothing of its identity
`,
  "start times after a restore": `
ps -o lstart of a new process in a sandbox of an hour-old snapshot | looked an hour old => btime with the process's own entry is within 20 s of its first line, in a copy and after a pause of more than 20 s | docker/sandboxes/sizes.test.ts | its copy, and itself after a pause see their own sizes
psutil there | the same => the same: it reads these two files | docker/sandboxes/sizes.test.ts | its copy, and itself after a pause see their own sizes
sibling: a sandbox from the pool, whose container is older than the sandbox | not tried => within 20 s too | docker/sandboxes/sizes.test.ts | sandboxes from the pool see their own sizes
sibling: /proc/uptime and os.uptime() of Node in a copy | not tried => no more than the time since the copy was started | docker/sandboxes/sizes.test.ts | its copy, and itself after a pause see their own sizes
sibling: date after a resume | not tried => the clock of the machine, within a second | conformance/snapshots/pause-resume.test.ts | the clock is right at once after a resume
`,
  "time-outs over a pause": `
timeout, alarm and timers over a pause with a quick resume | the pause counts, and no page said so => decided and documented; less than half of a pause of 6 s is missing from the monotonic clock | snapshots/agent-pause.test.ts | is kept frozen counts for the clock of timers
the same over a pause with a resume from the disk | the pause does not count, and no page said so => decided and documented; more than half of those 6 s is missing | snapshots/agent-pause.test.ts | is not kept frozen does not, because its resume is one from the disk
a program that must not depend on which of both it is | no choice => POST pause with {"frozen": false} reaches the node, and other pauses do not say so | integration/orchestrator/lifecycle/pause.test.ts | that is not to be kept frozen tells the node so
sibling: a sleep under way when memory is stored | CRIU made the call fail => it sleeps on, in the original and after the restore, and ends by itself | docker/runtime/runtime.test.ts | does not interrupt a program that sleeps
sibling: a program that counts, paused and resumed from frozen memory and from the disk by turns | not tried => it counts only for the time in which it ran | snapshots/agent-pause.test.ts | from frozen memory and from the disk, and no time has passed
sibling: frozen: false while another node or the store reads the disk | the end of the container changed the disk under the reader => the container stays until the reader is done | integration/agent/snapshots/snapshots.test.ts | a pause that keeps nothing frozen leaves the disk alone
sibling: a job that was stopped before the pause | CRIU waited for ever => it is still stopped after the restore | docker/runtime/runtime.test.ts | keeps a stopped job stopped
`,
  "sockets that cannot be stored": `
a server of Go 1.24 (net/http), then a pause | snapshot_failed: Go listens with Multipath TCP, which CRIU cannot store => socket(2) says EPROTONOSUPPORT for it, as on a kernel without it, and Go takes TCP | unit/agent/containers/seccomp.test.ts | Multipath TCP looks absent
sibling: TCP and UDP by the numbers of their protocols, over IPv4 and IPv6 | not tried => open as before | unit/agent/containers/seccomp.test.ts | Multipath TCP looks absent
sibling: such a socket in a sandbox from before | not tried => named as a socket that cannot be stored, with the process | unit/agent/snapshots/dump-log.test.ts | Unsupported proto 262 for socket
`,
  "timeouts that are set at another moment": `
set_timeout while createSnapshot is under way | 409 "is changing state" => 204 when the snapshot is taken | integration/orchestrator/lifecycle/meanwhile.test.ts | counts when that is done, and metrics are there meanwhile
sibling: set_timeout and refreshes during a fork | 409 => 204 when the copy is taken | integration/orchestrator/lifecycle/meanwhile.test.ts | counts when that is done, and metrics are there meanwhile
sibling: set_timeout while another client resumes the sandbox | 409 "is still starting" => 204 when it runs, and that timeout counts | integration/orchestrator/lifecycle/meanwhile.test.ts | a timeout that is set during a resume
sibling: set_timeout and refreshes of a paused sandbox | 404 "doesn't exist or you don't have access to it" => 404 that says that it is paused, and that connect takes the timeout | integration/orchestrator/lifecycle/pause.test.ts | has no time-out to set
`,
  "processes that cannot be stored at the moment": `
a pause while a process writes to a slow disk | 500 "the container did not end or freeze within 2000 ms" => waits for five times as long | unit/agent/snapshots/freeze.test.ts | has more time to stand still
sibling: one that takes longer | the same 500 => 503 that says why, that the sandbox goes on, and to try again | unit/agent/snapshots/freeze.test.ts | that does not stand still goes on
sibling: CRIU's own limit, in state D | "CRIU says: Timeout reached. Try to interrupt: 0" => in words | unit/agent/snapshots/dump-log.test.ts | Timeout reached. Try to interrupt
sibling: ip monitor with unread messages | "CRIU says: netlink: The socket has data to read" => in words, with the process | unit/agent/snapshots/dump-log.test.ts | The socket has data to read
sibling: a shell of docker exec in the sandbox's container | "CRIU says: A session leader of 41(0) is outside of its pid namespace" => in words | unit/agent/snapshots/dump-log.test.ts | is outside of its pid namespace
sibling: a failure at package-lock.json | "a file lock cannot be stored" => CRIU's own words | unit/agent/snapshots/dump-log.test.ts | stat path /srv/package-lock.json
sibling: memory that cannot be restored for a reason that CRIU gives | the reason alone => with the way out, memory: false | unit/agent/snapshots/restore-reason.test.ts | is told the way out once
`,
  "servers that change their root": `
sshd as root, a log-in | none, because chroot was refused => root runs a program with another root as another user | snapshots/other-root.test.ts | root can run a program with another root
vsftpd and haproxy as root | failed => a server that gives up root behind a changed root answers, and sees that root alone | snapshots/other-root.test.ts | a server behind another root goes on after a pause
a dump and a restore of a process with another root | not possible => it answers from behind its root after a pause and in a copy, with its nameless file open | snapshots/other-root.test.ts | still behind it
the attack table with chroot allowed | not tried => hostile sandboxes that change, remove, move and replace roots before dumps touch nothing of the host | snapshots/restore-escape.test.ts | leaves the host alone with
sibling: chroot as a user | refused => refused: "Operation not permitted" | snapshots/other-root.test.ts | and a user cannot
sibling: out of a changed root by a second one and a directory that is open outside | not tried => it ends at the sandbox's own root | docker/sandboxes/isolation.test.ts | nothing of the list can be done as
sibling: a namespace of users from behind chroot / | not tried => refused | conformance/sandboxes/isolation.test.ts | root inside cannot change the network, mount, or load modules
sibling: a server that renames the file of its socket after the bind, as haproxy does, over a pause and in copies | did not answer by the name of its file => it answers by it, with owner and mode kept | snapshots/renamed-sockets.test.ts | sockets whose file was renamed answer by the new name
`,
  "what the base image sets for commands": `
locale charmap in a command | ANSI_X3.4-1968 => UTF-8, also for root, and Python writes utf-8 | conformance/programs/base-template.test.ts | commands write characters beyond ASCII
ping -V | "Operation not permitted" at its start => it starts and prints its version | conformance/programs/base-template.test.ts | ping starts and names the rule that stops it
ping -c 1 127.0.0.1 | no page said that ICMP is closed => documented; ping itself says "Operation not permitted" | conformance/programs/base-template.test.ts | ping starts and names the rule that stops it
sibling: LANG given by the create, or by one command | not tried => it goes before the image's | unit/envd/init/session.test.ts | has LANG of the image, unless /init or the request sets it
sibling: an image without LANG | not tried => none is made up | unit/envd/init/session.test.ts | and none where the image has none
sibling: other programs with a capability outside of the bounding set (getcap -r /usr) | ping had one => none | conformance/programs/base-template.test.ts | ping starts and names the rule that stops it
sibling: a package that links a manual beside its program, as Debian's Java does | its installation failed => installed, and the program runs | conformance/programs/base-template.test.ts | a package whose script links a manual beside its program
`,
  "what Docker makes anew": `
echo 10.1.2.3 db >> /etc/hosts, then a pause and a resume with memory | the name was gone, while the programs went on => it is there | integration/envd/hosts.test.ts | has the names that its programs wrote to /etc/hosts
sibling: a file that became shorter | not tried => it is as it was, with its inode | integration/envd/hosts.test.ts | shorter
sibling: what a program writes there after a fork, or in the copy | not tried => it stays | integration/envd/hosts.test.ts | what programs write to /etc/hosts after a dump
`,
  "calls that programs can do without": `
get_mempolicy, as ClickHouse, vLLM and PostgreSQL 18 call it | "Operation not permitted", in each line of the log => ENOSYS: libnuma knows that there is no NUMA | unit/agent/containers/seccomp.test.ts | get_mempolicy
sibling: mbind of MySQL and Cassandra | EPERM, and a line on stderr each time => ENOSYS | unit/agent/containers/seccomp.test.ts | mbind
sibling: vmsplice of yes | EPERM => ENOSYS: it writes instead | unit/agent/containers/seccomp.test.ts | vmsplice
sibling: statmount and listmount, with a libseccomp that knows newer calls | EPERM => ENOSYS: /proc/self/mountinfo is read instead | unit/agent/containers/seccomp.test.ts | statmount
`,
  "what a login has": `
pnpm setup, which reads SHELL | ERR_PNPM_UNKNOWN_SHELL: commands had no SHELL => the shell of the user database | unit/envd/init/session.test.ts | has SHELL of the user
gosu app sh -c "echo x > /dev/stderr", as images' start scripts do | "Permission denied" => written | integration/envd/process/processes.test.ts | as another user can open them too
glances, which reads softirq of /proc/stat | TypeError: the line was missing => the line is there | integration/agent/procfs/files.test.ts | has every line that programs read
sibling: a user with /usr/sbin/nologin, or whose shell is not there | not tried => no SHELL | unit/envd/init/session.test.ts | none of a user who does not log in
sibling: a user whose entry names no shell | not tried => /bin/sh, as in libc | unit/envd/system/users.test.ts | has that of the system
`,
  "words of refusals": `
input for a command that was started without stdin | "stdin is closed" => failed_precondition: it was started without stdin, start it with stdin: true | integration/envd/process/processes.test.ts | input for a command that was started without stdin is refused
a create that is killed while it starts: 409 | "the execution was stopped while it started" => "the sandbox was killed while it started, or its caller had left: start it again" | unit/agent/sandboxes/sandboxes.test.ts | is refused with what its caller can know and do
rename of a directory over a file | named the wrong one => "destination 'to' is not a directory, but 'from' is one" | integration/envd/filesystem/odd-paths.test.ts | a directory over a file
sibling: a script with Windows line ends, started by its path | "executable not found", though it was there => "is there, but not the interpreter that it names", and what CR LF has to do with it | integration/envd/process/processes.test.ts | is not reported as missing
sibling: a stream of input for a command without stdin | "stdin is closed" => the same sentence | integration/envd/process/processes.test.ts | refused, also as a stream
sibling: input after the client has closed stdin | not tried => refused, naming the process and the close | integration/envd/process/processes.test.ts | whose stdin the client has closed
sibling: a command of more than 128 KiB | "arguments and environment are too long" => the same with the limit, and the way out: a file or stdin | integration/envd/process/processes.test.ts | arguments that are too long are refused
sibling: curl -F upload=@x to /files | 200 and [], and nothing was written => 400: the form has no part 'file', but 'upload' | integration/envd/files/uploads.test.ts | have another name than 'file' is refused
sibling: rename of a file over a directory | not tried => "destination 'to' is a directory" | integration/envd/filesystem/odd-paths.test.ts | a file over a directory
sibling: rename of a directory over a full one | not tried => "destination 'to' is a directory that is not empty" | integration/envd/filesystem/odd-paths.test.ts | a directory over a full one
sibling: rename of a directory into itself | not tried => "'from/x' is inside 'from'" | integration/envd/filesystem/odd-paths.test.ts | a directory into itself
sibling: rename into a name that is too long | not tried => refused, naming the destination | integration/envd/filesystem/odd-paths.test.ts | a move into a name that is too long
`,
};
