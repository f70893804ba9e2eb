/**
 * The table of faults that a control plane and its nodes must survive: what is broken, what holds afterwards, and the tests that break
 * it. A fault is survived when all its tests passed. A test of a fault ends with the one function of what must hold on a node
 * (`machine/invariants`), which `svc doctor` uses too.
 */

import { type Proof, rowsOf } from "../support/runner/outcomes.ts";

export interface Fault extends Proof {
  readonly what: string;
  /** What its test requires afterwards. */
  readonly must: string;
}

const KILLED = "the sandbox runs or resumes with its memory, is never lost and never twice, and nothing is left over";

/** Columns: what is broken, and when | what holds afterwards | the tests' file | a part of the tests' names. */
const TABLE: Readonly<Record<string, string>> = {
  "kill -9 of the orchestrator": `
in a create | no half sandbox; what was answered exists | chaos/crash.test.ts | random moments leaves no half sandbox
in a pause, resume, fork or snapshot | ${KILLED} | chaos/interrupted.test.ts | a sandbox survives
in one request of each kind, beside another orchestrator | the request is done or undone, and its repetition is answered | fleet/kills.test.ts | ms after one request of each kind had begun
in a build, by a restart | the build and its log go on, and the node is asked once | integration/orchestrator/builds/under-way.test.ts | a restart of the orchestrator in the middle loses nothing
`,
  "kill -9 of the agent": `
in a create | no half sandbox | chaos/crash.test.ts | random moments leaves no half sandbox
in a pause, resume, fork or snapshot | ${KILLED} | chaos/interrupted.test.ts | a sandbox survives
in a build | the build fails with its reason, nothing is left, the next one works | chaos/builds.test.ts | fails the build and leaves nothing
while sandboxes run | they go on without a gap | chaos/crash.test.ts | running sandboxes go on
`,
  "kill -9 of the Docker daemon": `
while sandboxes run | they go on, or are told as ended; new ones start | chaos/engine.test.ts | sandboxes are kept or reported as gone when dockerd is killed
in a pause, resume, fork or snapshot | ${KILLED} | chaos/interrupted.test.ts | (only with SVC_TEST_KILL_ENGINE=1)
`,
  "kill -9 of a shim of containerd": `
while its sandbox runs | the sandbox is told as ended, and nothing of it is left | chaos/crash.test.ts | a sandbox whose shim of containerd is killed
`,
  "kill -9 of CRIU": `
in a dump, and in a restore | ${KILLED}; where the dump held the first process, the disk is kept as a pause that says so | chaos/interrupted.test.ts | a sandbox survives
in a dump, at each of its steps | the sandbox loses nothing, and no name is left on its disk | snapshots/killed-dump.test.ts | a CRIU that is killed in a
`,
  "kill -9 of the daemon of lazy pages": `
before the last page | a dump of that memory is refused, now and later | unit/agent/snapshots/memory-images.test.ts | a page server that is killed before the last page
`,
  "kill -9 of envd": `
and of the first process, which ends with it | the sandbox is told as ended, and nothing of it is left | chaos/crash.test.ts | a sandbox whose first process dies is reported gone
`,
  "disk full on the node": `
in a dump | the sandbox runs on, no part is left, and a small one is stored afterwards | snapshots/agent-snapshots.test.ts | a sandbox whose memory does not fit continues to run
filled by another program in a snapshot, fork or pause | that operation fails, and nothing else | snapshots/full-host-disk.test.ts | a disk that fills in the middle of a snapshot
`,
  "disk full on the control plane": `
in a commit | nothing begins; kills and pauses happen, and are recorded at last | integration/orchestrator/store/full-database.test.ts | on a full disk nothing begins
in a commit, without any room | a kill and a pause happen on the node, and their records follow | integration/orchestrator/store/full-database.test.ts | without any room a kill and a pause still happen
`,
  "object store": `
away, and back | pauses and resumes go on; what was to be stored is stored afterwards | fleet/absences.test.ts | the blob store was away and came back
stands still | pauses and resumes go on; the node names it, and what was to be stored is stored afterwards | fleet/store.test.ts | that takes requests and answers none holds up no pause
another secret, region, bucket or address than the right one | the node says which setting to mend; what waited is stored afterwards | fleet/store.test.ts | says which setting to mend
500, busy, times out | the request is sent again, whole | integration/agent/blobs/s3-failures.test.ts | a request is sent again, whole and with a signature of its own
partial answers | asked for again | integration/agent/blobs/s3-failures.test.ts | an answer that is shorter than it says
on a slow line | what is read arrives, and is asked for once | integration/agent/blobs/s3-failures.test.ts | what a service gives slowly arrives
slow | an operation goes on meanwhile | fleet/cuts.test.ts | all is in order after the network between
`,
  "read-only file system": `
of the node, for a while | what begins meanwhile fails alone, sandboxes run on, and all is done as ever afterwards | integration/agent/recovery/read-only.test.ts | while each write fails with
of the node's disks | the doctor names it | doctor/faults.test.ts | a disk that is read-only
of the database, which fails | 503 with the cause; kills reach the node | integration/orchestrator/store/full-database.test.ts | a disk that reports errors
`,
  "clock jump of an hour, ahead and back": `
on the orchestrator's machine | no node is lost, and sandboxes live as long as they were to | integration/orchestrator/repairs/clock-jumps.test.ts | loses no node, and ends no sandbox before or after its time
on a node | the agent ends no sandbox while an orchestrator answers, and by the time that has passed while none does | unit/agent/sandboxes/expiry.test.ts | a clock that is set by
on a node, whose lease | freezes nothing: the lease is counted by the kernel's time | integration/agent/lease/lease.test.ts | a node that is cut off freezes its sandboxes at the limit
on a node, ten minutes off for as long as it runs | sandboxes live as long as they should, and operators see the clock | fleet/clock.test.ts | sandboxes of a node whose clock is
`,
  "reboot with 50 sandboxes": `
twenty of them run, thirty are paused in three ways | those that ran are told as ended, the paused ones go on, nothing is left over | reboot/reboot.test.ts | reboots, and up brings its platform back
`,
  "network split, then healed": `
between each pair of programs, both ways, one way and slow | what has another way goes on, and afterwards all is in order | fleet/cuts.test.ts | all is in order after the network between
for longer than a lease | what runs there freezes, and goes on with an answer | fleet/cuts.test.ts | a node that is cut off for longer than its lease
for good | what ran there is lost with an event, what was stored goes on elsewhere once | fleet/cuts.test.ts | a node that is cut off for good
`,
  "two agents with one identity": `
while the first answers | the second is refused and told what to do, and the first one's sandboxes go on | integration/orchestrator/nodes/admission.test.ts | of two agents with one identity
`,
  "orchestrator with an older database": `
and with an empty one, and with that of another platform | nodes refuse it, nothing ends, one command adopts | chaos/strange-database.test.ts
`,
  "each request between orchestrator and agent twice": `
to the agent, two at once and a third one later | the same answer, one effect; after the end nothing begins again | integration/agent/api/repeated.test.ts
to the orchestrator, two at once and a third one later | each transition once | integration/orchestrator/nodes/repeated.test.ts
`,
  "slow node": `
SIGSTOP of an agent for 30 s | nobody else waits for it, and it goes on where it was | fleet/absences.test.ts | an agent stood still for 30 s
`,
  "SQLite busy": `
by another program that writes | the create waits, and is done then | integration/orchestrator/store/busy-database.test.ts | a create waits until another program
`,
  "file of the write-ahead log deleted": `
while a store works, or replaced by an older one | nothing committed is lost | integration/orchestrator/store/journal.test.ts | nothing committed is lost
`,
  "corrupted piece of an image": `
of memory on the node | snapshot_corrupt, never half a sandbox; the disk still boots | snapshots/agent-pause.test.ts | a damaged memory image is reported
of a snapshot in the store | never started from, and nothing of it is left on the node | integration/agent/snapshots/fetches.test.ts | a part that is damaged in the store
`,
  "agent one version older, and newer": `
beside this orchestrator | of a newer one's reports what is known is taken; an older one's lack what came later, and cost nothing | integration/orchestrator/nodes/versions.test.ts
beside this agent, of an orchestrator | an order with an unknown field, or to an unknown route, is refused before anything is done; answers are taken as far as they are known | integration/agent/api/versions.test.ts
`,
  "end of a certificate": `
of a node | it starts all the same, so that its sandboxes end in time | integration/agent/joining/membership.test.ts | starts although its certificate has ended
of a node, and then a join | it has its name again | integration/agent/joining/membership.test.ts | joins again under its name with its key after its certificate has ended
of a node that was away | it comes back with the token that it had joined with | integration/orchestrator/nodes/authority.test.ts | a node whose certificate has ended since
`,
  "no free descriptors": `
in the egress process | connections are refused, and taken again afterwards | docker/egress/process-life.test.ts | an egress process without free descriptors
in the agent | its watches are started again, and it does not end | unit/agent/host/no-descriptors.test.ts
in the orchestrator | it warns at its start of a limit that is too low | integration/orchestrator/api/few-descriptors.test.ts | an orchestrator with 1 024 descriptors
`,
  "table of the firewall flushed by another program": `
while a sandbox runs | no packet leaves that may not, and the table is put back | docker/sandboxes/agent.test.ts | a flushed firewall is restored
at the moment of a packet | it does not leave | docker/network/flushes.test.ts | a packet that is under way
emptied and deleted, while sandboxes flood | nothing forbidden arrives | chaos/egress.test.ts | nothing forbidden arrives meanwhile
`,
  "restart of the Docker daemon, which writes its own rules": `
by kill -9 and a start | new sandboxes work, and old ones go on or are told as ended | chaos/engine.test.ts | sandboxes are kept or reported as gone when dockerd is killed
a chain of Docker that is gone | named where it is needed | docker/network/reach.test.ts | Docker's chain that is gone is named
`,
};

const ALONE = "its tests look at one program alone, and do not gather the invariants yet";

/**
 * Faults of which no test asks for the invariants, with the reason; every other fault has a test that does.
 */
export const WITHOUT_INVARIANTS: Readonly<Record<string, string>> = {
  "kill -9 of the daemon of lazy pages": ALONE,
  "disk full on the node": ALONE,
  "corrupted piece of an image": ALONE,
  "table of the firewall flushed by another program": ALONE,
  "disk full on the control plane": ALONE,
  "two agents with one identity": ALONE,
  "SQLite busy": ALONE,
  "file of the write-ahead log deleted": ALONE,
  "end of a certificate":
    "a node whose certificate has ended has nothing to lose but its reports: that is a network that is cut",
  "no free descriptors": "the tests exhaust one program alone, without a platform around it",
};

/** All faults of the table, by what is broken. */
export const faults: Readonly<Record<string, readonly Fault[]>> = Object.fromEntries(
  Object.entries(TABLE).map(([fault, text]) => [
    fault,
    rowsOf(text).map(({ columns: [what, must], ...proof }) => ({ what, must, ...proof })),
  ]),
);
