/**
 * The standing table of attacks: what an attacker tries, what must happen, and the tests that try it. The table is ordered
 * by class, so that a new attack finds its place. A promise counts as kept only when all its tests passed.
 */

import { type Proof, rowsOf } from "../support/runner/outcomes.ts";

export interface Attack extends Proof {
  readonly what: string;
  readonly must: string;
}

/** Columns: what the attacker tries | what must happen | the tests' file | a part of the tests' names. */
const TABLE: Readonly<Record<string, string>> = {
  "API with foreign ids, tokens and signatures": `
ids and names of another project, on every route | answered as what does not exist | integration/orchestrator/api/foreign.test.ts
a sandbox of another project, by the SDK | answered as what does not exist | conformance/api/keys.test.ts | a key gets 404 for another project's sandbox
a private template of another project | answered as what does not exist | conformance/templates/sharing.test.ts | another project can use a template only while it is public
a key that was deleted, in a hundred calls at once | refused | integration/orchestrator/access/access.test.ts | a key in use in a hundred calls
an API key on the operator's routes | refused | integration/orchestrator/access/access.test.ts | does not take an API key
metrics without a token, on loopback too | refused | integration/orchestrator/access/access.test.ts | metrics are for operators
a signed URL for another path, direction, user or end | refused | conformance/files/signed-urls.test.ts | a signature is for one path
a signature for no sandbox, without routing headers | reaches no sandbox | conformance/files/signed-urls.test.ts | a signature for no sandbox
an upload with another URL than was given | refused | integration/orchestrator/templates/files.test.ts | with another URL than it was given
the node's routes of envd, from inside and outside | refused | integration/envd/access.test.ts | only the node may initialise, read logs, warm up or tunnel
a token of one sandbox at another's initialisation | refused | integration/envd/access.test.ts | only a caller with the sandbox's token may initialise again
the node's proxy without the node's token | refused | integration/orchestrator/edge/reaching.test.ts | refuses requests without the node's token
private traffic without its token | refused | conformance/network/ingress.test.ts | without its token is refused
one node's token for another node, or for the other direction | refused | integration/orchestrator/nodes/tokens.test.ts
a wrong key again and again, behind the address of others | only its own attempts are used up | integration/orchestrator/access/access.test.ts | the one that repeats a wrong key
secrets in the database's file | not there in clear | integration/orchestrator/secrets/at-rest.test.ts
a value of a project's secret, in files, logs, events and answers | nowhere in clear | integration/orchestrator/secrets/values.test.ts | a node gets the value that is current
a node that asks for values of another node's sandbox, or beyond its rules | refused | integration/orchestrator/secrets/values.test.ts | a node gets nothing of another node
a rule that names another project's secret | refused, and never its value | integration/orchestrator/secrets/values.test.ts | in another project is another secret
the encrypted value of one secret in the row of another | does not open | unit/orchestrator/secrets/secrets.test.ts | a value opens as its own secret and version only
secrets and control tokens in the node's database file | not there in clear | unit/agent/store/database/seal.test.ts
a volume's content with another token, or none | refused | integration/orchestrator/volumes/content.test.ts | only this volume's own, unexpired token opens it
paths and links in a volume that lead out of it, pipes | refused, and nothing hangs | integration/orchestrator/volumes/content.test.ts | no path and no link leads out of a volume
a tree in a volume that is deeper than any path | removed | integration/orchestrator/volumes/content.test.ts | a tree deeper than any path is removed
`,
  "between machines": `
a join with a used, ended, revoked, wrong or foreign token | refused, with the cure | integration/orchestrator/nodes/joining.test.ts | a join is refused
something between the machines that answers in the platform's place | the token's secret is not sent | integration/orchestrator/nodes/joining.test.ts | which sends nothing, with a token of another platform
a report under the name of another node, without a certificate, or after the node was removed | refused | integration/orchestrator/nodes/joining.test.ts | a report of a node that joined is refused
a second agent with the identity of one that answers | refused, and it says so | integration/orchestrator/nodes/admission.test.ts | of two agents with one identity
a stranger, and a node, at another node's agent API | let in to no handler | integration/shared/meeting.test.ts | does not let a client without a certificate
a node's proxy that shows another node's certificate, or none | gets no request | integration/orchestrator/edge/secured.test.ts
`,
  "request side": `
a body after a request that its server left unread | not read as the next visitor's request | integration/orchestrator/edge/unread-bodies.test.ts
the same to a destination whose requests get a rule's headers | not served as a request | integration/agent/egress/unread-bodies.test.ts
requests that two readers could take for different ones | refused, or read in one way | integration/orchestrator/edge/smuggling.test.ts
internal routes of envd, written in another way | refused | integration/orchestrator/edge/front-door.test.ts | are closed through a port in another spelling
two different sandboxes in the routing headers, or nonsense | refused | conformance/network/ports.test.ts | malformed routing headers and names are refused
any bytes on one connection to the edge | the sandbox is asked what Node's own server would be; others are served | fuzz/fuzz.test.ts | edge-request keeps its promise
any bytes to envd | envd runs on and answers others | integration/envd/hardening.test.ts | any bytes at all leave envd running
headers without end to envd, and what is no HTTP | refused | integration/envd/hardening.test.ts | endless headers are refused, and so are bytes that are no HTTP
wrong bodies, queries and paths to the API | refused by the field's name | integration/orchestrator/api/bad-input.test.ts
a body far too long | refused or cut while it is sent | conformance/api/bad-input.test.ts | a body that is far too long
what follows a refused body | not read as a request | integration/shared/http-server.test.ts | bytes after a refused body
inputs near right ones, to every reader of untrusted bytes | one reading, its own errors only | fuzz/fuzz.test.ts
`,
  "hostile responses": `
a response that a sandbox splits in two | stays the answer to one request | integration/orchestrator/edge/smuggling.test.ts | a response split by the sandbox
an answer without a request | reaches no visitor | integration/orchestrator/edge/smuggling.test.ts | an answer without a request reaches no visitor
an answer that is cut off | cut off for the client too, never finished | integration/orchestrator/edge/forwarding-connections.test.ts | whose answer is cut off
informational answers without end | the server is cut off, its client gets an error | integration/orchestrator/edge/slow-readers.test.ts | endless informational answers
a client that resets its connection at any moment | the edge and the node's proxy go on | integration/orchestrator/edge/resets.test.ts
any bytes of a server in a sandbox | the visitor's next request gets its own answer | fuzz/fuzz.test.ts | edge-response keeps its promise
a destination that speaks no TLS, no HTTP, or nothing | 502 with the reason | integration/agent/egress/transform-failures.test.ts | answers without TLS
a certificate that no authority signed, where headers are set | nothing is sent to it | conformance/network/egress-transform.test.ts | the destination's certificate is verified
`,
  "slow clients": `
a request that never ends its head | others are served | integration/orchestrator/edge/reaching.test.ts | never ends its head
a head that trickles to the API | the connection ends | integration/shared/http-server.test.ts | when a head trickles
a body that trickles to the API | 408, and the connection ends | integration/shared/http-server.test.ts | ends with 408 when it trickles
a refused client that goes on sending | its connection is closed | integration/shared/http-server.test.ts | although the client goes on
a client that does not read, when its sandbox ends | the removal does not wait | integration/orchestrator/edge/endings.test.ts | a slow client does not hold up
clients and servers that do not read, by every kind of thing that can wait for them | the sender waits, memory does not grow | integration/orchestrator/edge/slow-readers.test.ts | does not read
the same between a sandbox and a destination, at the header rewriter | the sender waits, memory does not grow | integration/agent/egress/slow-readers.test.ts
connections to the edge and the node's proxy that show nothing, of one address and of many | few, and visitors get in | integration/orchestrator/edge/connections.test.ts
signed URLs with wrong signatures, each of which costs a hash for every sandbox | an address waits after sixty, others do not | unit/orchestrator/edge/signers.test.ts
connections to the API that show nothing, of one address and of many | few, and callers with a key get in | integration/orchestrator/api/connections.test.ts
the same to the agent's API | few, and the orchestrator gets in | integration/agent/api/connections.test.ts
connections that say nothing, to envd | others are let in | integration/envd/hardening.test.ts | silent connections do not keep other clients out
a reader of output that does not read | the process waits, memory does not grow | integration/envd/process/processes.test.ts | a slow reader slows the process
a sandbox that does not read what it asked the internet for | it is not kept in memory | docker/egress/process-life.test.ts | data that a client does not read
a hello in pieces, huge, or never | undecided is denied | conformance/network/bypass-by-name.test.ts | 11 hellos in pieces
`,
  egress: `
DNS tunnels, other resolvers | nothing arrives | conformance/network/bypass.test.ts | 1 DNS tunnelling
IPv6 forms of a denied address | nothing arrives | conformance/network/bypass.test.ts | 2 IPv6
a name that rebinds | nothing arrives | conformance/network/bypass.test.ts | 3 DNS rebinding
metadata of clouds, link-local | nothing arrives | conformance/network/bypass.test.ts | 4 metadata
the host's own addresses | nothing arrives | conformance/network/bypass.test.ts | 5 the host's own
odd spellings of addresses and names | nothing arrives | conformance/network/bypass.test.ts | 6 odd spellings
raw sockets, ICMP | nothing arrives | conformance/network/bypass.test.ts | 7 raw sockets
UDP, QUIC and rarer protocols | nothing arrives | conformance/network/bypass.test.ts | 8 UDP, QUIC
SNI spoofing and fronting | the name decides, and is dialled | conformance/network/bypass-by-name.test.ts | 9 SNI spoofing
no name, or none that counts | decided by address | conformance/network/bypass-by-name.test.ts | 10 no name
HTTP tricks with two hosts | nothing arrives | conformance/network/bypass-by-name.test.ts | 12 HTTP tricks
redirects to a denied host | nothing arrives | conformance/network/bypass-by-name.test.ts | 13 redirects
names for the proxy with NUL, suffixes, too many letters | never reach the proxy | conformance/network/bypass-by-name.test.ts | 14 names for SOCKS
names that end alike | nothing arrives | conformance/network/bypass-by-name.test.ts | 15 wildcards
first packets of a sandbox that was just claimed | nothing arrives | conformance/network/bypass.test.ts | 16 races
another sandbox by the platform's edge | its policy and tokens hold | conformance/network/bypass.test.ts | 17 inbound reflection
the authority's key, and its leaves for other hosts | not inside, not shown | conformance/network/bypass-by-name.test.ts | 19 the authority
a secret header reflected by another host or port | sent to its host only | conformance/network/bypass-by-name.test.ts | 20 secret reflection
Docker's ways to the host | nothing arrives | conformance/network/bypass.test.ts | 21 Docker's ways
multicast and broadcast | nothing arrives | conformance/network/bypass.test.ts | 22 multicast
programs of the enforcement are killed, its table deleted | nothing arrives | chaos/egress.test.ts | nothing forbidden arrives meanwhile
first packets after a resume, of forks, of a pool entry | nothing arrives | chaos/egress.test.ts | the first packets
open flows when a policy is tightened | cut before the answer | conformance/network/egress-update.test.ts | cuts flows that are now forbidden
a refused change of a policy | the old one holds whole | conformance/network/egress-update.test.ts | is whole or not at all
a sandbox whose envd does not answer a tightened policy | the policy is in force | docker/network/policy-veto.test.ts
the egress process taken over: files, processes, the kernel's other doors | it is a user without rights, and refused | docker/egress/confined.test.ts
a borrowed source address | nothing arrives | docker/sandboxes/isolation.test.ts | packets with a source address of another sandbox
`,
  secrets: `
a redirect of a rule's host to another host | the value is not sent along | conformance/secrets/in-requests.test.ts | is not sent along with a redirect
a second Host header, a Host that differs from the SNI, CONNECT in the connection | refused; no value is sent | conformance/secrets/in-requests.test.ts | is not sent for
the same, smuggled requests and other SNI, at the header rewriter | refused; nothing is sent | integration/agent/egress/placeholder-values.test.ts | is refused, and nothing is sent
a handshake for another name than the connection's | ends; no value is asked for | integration/agent/egress/placeholder-values.test.ts | another SNI than the name of the connection
a request without TLS | refused; no value is asked for | conformance/secrets/in-requests.test.ts | is sent over TLS only
a host whose certificate does not hold | gets nothing | integration/agent/egress/placeholder-values.test.ts | a destination whose certificate does not hold
a rule that names another project's secret | refused | conformance/secrets/in-requests.test.ts | another project's secret does not exist for a rule
an old snapshot | has no rule, and so no value | conformance/secrets/in-requests.test.ts | a sandbox made from a snapshot has no rule
a value kept from before a deletion, also by a sandbox that was paused | not used | conformance/secrets/in-requests.test.ts | requests fail when the secret is deleted
a value kept for another sandbox, by the time of its answer | each execution asks for itself | unit/agent/placeholders/values.test.ts | those of another execution do not
a value that arrives after a pause or a new policy | not handed out | unit/agent/placeholders/values.test.ts | is not handed out
a placeholder that no rule of the execution has | not asked for | unit/agent/placeholders/values.test.ts | the orchestrator is not asked
a value with line breaks | refused by the placeholder's name | integration/agent/egress/placeholder-values.test.ts | a value with a line break is refused
values in databases, logs, metrics, processes, stored memory, disks | not there in any form | conformance/secrets/leaks.test.ts | values of secrets and tokens are nowhere
the memory of a program in a core file | no core file has it | conformance/secrets/leaks.test.ts | writes its memory to a core file
`,
  "kernel surface": `
the list of isolation, as root and as user | nothing of it can be done | docker/sandboxes/isolation.test.ts | nothing of the list can be done
system calls that no sandbox needs | refused | unit/agent/containers/seccomp.test.ts | is not permitted
sockets of families with known holes | do not exist | conformance/sandboxes/isolation.test.ts | dangerous kinds of sockets
facts of the host in /proc | not readable, also after a restore | docker/sandboxes/host-facts.test.ts
the files that say a sandbox's sizes: written, unmounted or covered by root inside | refused | docker/sandboxes/sizes.test.ts | see their own sizes
mounts, modules, the network, as root inside | refused | conformance/sandboxes/isolation.test.ts | root inside cannot change the network
every inode that two sandboxes can both reach, of files, mounts, processes, descriptors and namespaces | the kernel's own only | snapshots/shared-inodes.test.ts | share no inode
leases, locks, watches and attributes on each, held while a neighbour starts, pauses, resumes and is copied | it is not delayed, and not seen | snapshots/shared-inodes.test.ts | delays or shows
the mode of a masked file of /proc changed by root in a restored sandbox | the machine's /dev/null keeps its own | snapshots/shared-inodes.test.ts | share no inode
leases and directory notes by other numbers of the same call | refused | unit/agent/containers/seccomp.test.ts | takes a lease or watches
the way out of a changed root, as root and as user | leads to the sandbox's own root | docker/sandboxes/isolation.test.ts | nothing of the list can be done
processes, also the first one, whose root is removed, moved or replaced by a link before a dump | nothing of the host is made, read or changed | snapshots/restore-escape.test.ts
the overlay's notes about renamed directories, written by root inside | refused | snapshots/renamed-directories.test.ts | cannot write the overlay's notes
the same, brought by the layers of an image | lead to the image's own files | snapshots/renamed-directories.test.ts | leads to the image's own files
user namespaces, which a browser's own sandbox would need, as root inside | refused | conformance/sandboxes/isolation.test.ts | root inside cannot change the network
the same by a process of the user, in each way that the kernel has | refused | docker/sandboxes/isolation.test.ts | nothing of the list can be done
a page in the template's browser, at a name that leads to the sandbox itself, which asks that browser's DevTools | refused | integration/scripts/host/browser-front.test.ts | a name that leads to the sandbox itself
a container with privileges, or a way to the Docker daemon | never made | unit/agent/containers/options.test.ts | no privileges and no way
another sandbox's address, processes, files, names | not reached, not seen | conformance/sandboxes/isolation.test.ts | cannot reach each other
another sandbox's address for oneself | refused | conformance/sandboxes/isolation.test.ts | cannot take each other's address
`,
  restore: `
files of the host, and of another sandbox, through ghosts and links of a restored one | nothing is made, read or changed there | snapshots/restore-escape.test.ts
the same by pauses, forks, snapshots, templates with memory, and COPY through links | nothing is made, read or changed there | snapshots/escape-rounds.test.ts
a damaged memory image | reported; the disk still boots | snapshots/agent-pause.test.ts | a damaged memory image is reported, and the disk still boots
a restore that hangs | cut with its reason, and others do not wait for it | snapshots/hanging-restore.test.ts
files that are deleted or replaced while a process has them open | as they were, in a copy and after a pause | docker/runtime/open-files.test.ts
names that a dump gives to open files | not left in any sandbox | snapshots/open-file-names.test.ts
a stopped process that CRIU holds in a dump | stays in its sandbox's freezer group | snapshots/killed-dump.test.ts | is not in the machine's own freezer group
CRIU killed in a dump | costs the sandbox nothing | snapshots/killed-dump.test.ts | costs the sandbox nothing
CRIU and the sandbox's first process killed in a dump | the disk is kept as a pause | snapshots/killed-dump.test.ts | is kept as a pause of its disk
what cannot be stored | the sandbox goes on, the answer has the reason | snapshots/agent-pause.test.ts | a sandbox that cannot be stored continues to run, and the answer has the reason
a copy with the identity of its source | it has its own | snapshots/agent-pause.test.ts | nothing of its identity
CRIU, the agent or the orchestrator killed in the middle | never lost, never twice | chaos/interrupted.test.ts
many restores of one project | permits are left to others | integration/agent/snapshots/resumes.test.ts | leave a permit to the restores of another project
`,
  "resource floods": `
no more processes | the sandbox recovers | conformance/processes/processes.test.ts | a start beyond the limit of processes
all memory | the command dies alone | conformance/processes/processes.test.ts | a command that eats all memory
more connections than a sandbox may have | refused; its neighbour is not touched | docker/network/firewall.test.ts | at its limit of connections
connections begun without end, so that the kernel's table is full | a bounded part of it; its neighbour is not touched | docker/network/firewall.test.ts | takes a bounded part of the kernel's table
watches, terminals, pipes, files, asynchronous requests that the kernel counts for all | its neighbour gets its own | docker/sandboxes/shared-limits.test.ts
no free descriptors in the egress process | it refuses, and recovers | docker/egress/process-life.test.ts | without free descriptors
more connections to the node's proxy than its limit | refused | integration/orchestrator/edge/reaching.test.ts | connections beyond a sandbox's limit
questions for names that trickle, or whose answers are not read | the connection ends | integration/agent/egress/dns.test.ts | a TCP connection that
a flood of decisions for the log | counted, not kept | conformance/network/egress-audit.test.ts | is bounded: a flood
space reserved with fallocate, holes that a copy makes real | refused | docker/node-disk/disk.test.ts
memory that does not fit on the disk | refused; the sandbox goes on | snapshots/agent-snapshots.test.ts | whose memory does not fit
snapshots beyond the quota of the node or of a project | refused before anything is written | unit/agent/snapshots/quota.test.ts
the log of the Docker daemon | bounded, and not readable by everybody | integration/scripts/bound-log.test.ts
bombs, too many entries, too many bytes in an archive | refused | unit/agent/builds/archive.test.ts | a bomb are refused
too many calls of the API | 429, other kinds go on | integration/orchestrator/access/access.test.ts | too many calls of one kind
thousands of requests and WebSockets that break off | nothing is left open | integration/orchestrator/edge/endings.test.ts | nothing is left open
sixty lives, ten at a time | nothing is left on the host | chaos/churn.test.ts
`,
  "hostile envd and archives": `
envd's memory, environment and token, as the user | not readable | conformance/sandboxes/isolation.test.ts | the user inside cannot read envd's memory
a user's links to what is root's, by every route for files | refused | integration/envd/filesystem/links.test.ts
a proxy's answer that is no SOCKS, or is cut anywhere | no tunnel, or its first byte | fuzz/fuzz.test.ts | socks-reply keeps its promise
an archive that leads out of its directory | refused with the reason | unit/agent/builds/archive.test.ts | is refused with a reason
sparse files in a layer of an uploaded image | refused by name | unit/agent/builds/layer-entries.test.ts
an uploaded image that names another's layer | refused | unit/agent/builds/oci-archive.test.ts
a step of a build that reaches what no sandbox may | refused | docker/builds/images.test.ts | a step reaches no more
an image of this machine, by name or id | only where its operator allows it | integration/agent/builds/builds.test.ts | an image of this machine
a helper of envd that is lost | told, and replaced | integration/envd/hardening.test.ts | the end of a lost helper reaches its followers, and the helper is replaced
signals other than SIGTERM and SIGKILL | refused | integration/envd/process/process-ends.test.ts | only SIGTERM and SIGKILL can be sent
a killed process that the kernel has not taken away | not reported as gone before it is | integration/envd/process/process-ends.test.ts | SIGKILL is answered only when the process is gone
input for a process that does not read, when it ends | not told as delivered | integration/envd/hardening.test.ts | input for a process that does not read
`,
};

/** What the templates of desktops, browsers and agents open. `npm run test:starters` tries these, where the templates were built. */
const OF_STARTERS = {
  "desktops, browsers and agents": `
the stream of a desktop, from outside, without its password and with a wrong one | not let in | starters/desktop.test.ts | the stream is served with a password
the stream of a desktop whose traffic is private, without the sandbox's token | refused | starters/screen.test.ts | whose traffic is private
the password that watches a screen only, used to steer it | the pointer stays, also when somebody else steers | starters/screen.test.ts | the other one watches only
a screen that was handed over, without a password, with a wrong one, and after the end | not let in, and cut off | starters/screen.test.ts | without one nobody is let in
the DevTools of a browser whose traffic is private, without the sandbox's token | refused | starters/browser.test.ts | driven from outside
a page in the browser that asks that browser's DevTools, by requests and by a WebSocket | gets nothing of them | starters/browser.test.ts | a page in the browser
keys in the templates of coding agents | none | starters/agents.test.ts | starts without a key
the key of a coding agent, looked for in its sandbox while its requests carry it | not there | starters/outside.test.ts | the key of a coding agent
`,
};

const read = (table: Readonly<Record<string, string>>): Readonly<Record<string, readonly Attack[]>> =>
  Object.fromEntries(
    Object.entries(table).map(([group, text]) => [
      group,
      rowsOf(text).map(({ columns: [what, must], ...proof }) => ({ what, must, ...proof })),
    ]),
  );

/** All attacks of the table, by class. */
export const attacks = read(TABLE);
export const attacksOfStarters = read(OF_STARTERS);
