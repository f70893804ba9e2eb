/** Cases of clients and their versions. Columns: see ../table.ts. */
export const clients: Readonly<Record<string, string>> = {
  "tokens that name their sandbox": `
npm e2b 2.7.0 to 2.14.0, files.write to E2B_SANDBOX_URL with X-Access-Token and no E2b-Sandbox-Id | 400 "missing header" => POST /files reaches envd of the sandbox that has the token, straight and through the node's proxy | integration/orchestrator/edge/tokens.test.ts | leads files, health and calls to envd of that sandbox
Python e2b 2.7 to 2.25, /health and /process.Process/Start with the token alone | 400 "missing header" => both reach envd of that sandbox with the token, among two sandboxes in turn | integration/orchestrator/edge/tokens.test.ts | leads files, health and calls to envd of that sandbox
the token and E2b-Sandbox-Port: 8000, without an id | 400 "missing header" => 400 "missing header" still: a token alone leads to envd's port and to no other | integration/orchestrator/edge/tokens.test.ts | and to no other port
the token alone, of a paused sandbox with auto-resume | 400 "missing header" => the request resumes the sandbox and is answered by its envd; a wrong token gets 502 and resumes nothing | integration/orchestrator/lifecycle/auto-resume.test.ts | resumes it, and a wrong token resumes nothing
the token alone, of a paused sandbox without auto-resume | 400 "missing header" => 502 "The sandbox is paused: connect to resume it", and it stays paused | integration/orchestrator/lifecycle/auto-resume.test.ts | says that it is paused where traffic does not resume it
tokens that belong to no sandbox, 120 from one address | 400 "missing header" => 502 whose text says that the token belongs to none, then 429; after that the right token still gets 200 | integration/orchestrator/edge/tokens.test.ts | an address may send only some
a token among running and paused sandboxes | not looked up => found by the index without a search; wrong ones count with wrong signatures, for their address alone | unit/orchestrator/edge/signers.test.ts | a token finds its sandbox without a search, running or paused
sibling: POST /init with the token alone | not tried => 404 "reserved for the control plane", as with the id | integration/orchestrator/edge/tokens.test.ts | leads files, health and calls to envd of that sandbox
sibling: one request with the tokens of two sandboxes | not tried => 400, and neither sandbox is asked | integration/orchestrator/edge/tokens.test.ts | leads files, health and calls to envd of that sandbox
sibling: the token alone, at an edge program, from the moment of a pause | the edge looked in its list of paused sandboxes from before the pause => the edge asks for the list again when a sandbox is paused, and finds it | integration/orchestrator/edges/following.test.ts | so that its token alone finds it at once
sibling: the token alone, of a killed sandbox | not tried => 502 or, for an address with too many wrong ones, 429, as for a token of no sandbox | integration/orchestrator/edge/tokens.test.ts | of no sandbox is answered as an unknown sandbox is
`,
  "gRPC-Web": `
a Go client with connect.WithGRPCWeb() makes a directory, then asks for a path that is not there | 415 with an empty body => the entry, then not_found with its message, in protobuf and JSON, binary and text | integration/envd/grpc-web.test.ts | gets the answer of a call, and its error with code and message
the same client starts a command | 415 with an empty body => all 300 000 bytes of output, the error output and exit code 3 | integration/envd/grpc-web.test.ts | reads a command's output to its end, every byte of it
the same client opens a terminal | 415 with an empty body => what it types by single calls and by a stream of input is carried out | integration/envd/grpc-web.test.ts | types into a terminal, by single calls and by a stream of input
the same calls through the edge of a running platform | 415 with an empty body => commands and files work in all four forms, and the exit code arrives | conformance/api/grpc-web.test.ts | commands and files work in
sibling: a stream whose sandbox is killed | the stream was cut without a status => it ends with unavailable in its trailers, and a later call does too | conformance/api/grpc-web.test.ts | a stream ends with an error when its sandbox is killed
sibling: a call without the token, or with a wrong one | not tried => unauthenticated with its reason, as trailers that the client can read | integration/envd/grpc-web.test.ts | without the token reads why it is refused
sibling: a call in binary that accepts text, and the reverse | not tried => the answer has the form that the client accepts | integration/envd/grpc-web.test.ts | has the form that the client accepts
sibling: text that is not base64 | not tried => invalid_argument, also for a lone character or bytes behind the padding | integration/envd/grpc-web.test.ts | is the client's mistake
sibling: a stream that its client leaves | not tried => the command runs on without the client | integration/envd/grpc-web.test.ts | leaves a stream early, and the command runs on without it
sibling: a stream whose deadline passes | not tried => it ends with deadline_exceeded, and its process ends | integration/envd/grpc-web.test.ts | ends a stream at the deadline that it names
sibling: a page of another origin in a browser | not tried => grpc-status, grpc-message and grpc-status-details-bin are exposed to it | integration/envd/grpc-web.test.ts | scripts of other origins may read the status of a call
sibling: gRPC itself | 415 with an empty body => 415 whose message says that gRPC itself needs HTTP/2 | integration/envd/grpc-web.test.ts | gRPC itself is refused in words
`,
  "Python clients of mid 2025": `
Python e2b 1.5.0 to 1.5.2 (User-Agent: connect-python), Stat, MakeDir and Move | the client raises: no field named "size" => the entry has name, type and path alone, with X-E2B-Legacy-SDK: true | integration/envd/legacy-clients.test.ts | answers old clients with name, type and path alone
the same client, ListDir | the client raises: no field named "size" => each of the entries has the three fields alone, with the header | integration/envd/legacy-clients.test.ts | a listing for old clients has the three fields of each entry
the same client, ListDir of /etc through the edge | the client raises: no field named "size" => no entry has any other field | conformance/api/older-clients.test.ts | Python clients of mid 2025 get entries with name, type and path alone
sibling: the same client, ListDir with a link that leads nowhere | not tried => the entry of the link has a name and a path, and no type | integration/envd/legacy-clients.test.ts | no kind for a link that leads nowhere
sibling: the same client, GetWatcherEvents of a watcher with includeEntry | not tried => events with name and type, and no entry | integration/envd/legacy-clients.test.ts | events that old clients fetch have no entry
sibling: user agents that look alike: connect-python/1.0, e2b-python-sdk/1.5.3 | not tried => all fields, and no header | integration/envd/legacy-clients.test.ts | other clients get all fields and no notice
`,
  "addresses that getHost gives": `
fetch("http://8000-<id>.localhost:3002") in Node on Debian without libnss-myhostname | ENOTFOUND; browsers and curl alone find it => up installs libnss-myhostname where neither libc nor a name server knows such names | integration/scripts/installed.test.ts | nothing on the machine answers
down --purge after up has installed that package | not said => the last line names the packages that up has installed and that stay | integration/scripts/installed.test.ts | the scripts name the packages that up has installed
sibling: a machine whose libc has myhostname or resolve in nsswitch.conf | not tried => nothing is installed or listed | integration/scripts/installed.test.ts | libc has a module for them
sibling: a machine whose name server answers for *.localhost | not tried => nothing is installed or listed | integration/scripts/installed.test.ts | a name server of the machine answers
sibling: a program that asks a name server itself (Go without cgo, musl, dns.resolve) | name not found => docs/using.md gives the address 127.0.0.1:3002 with E2b-Sandbox-Id and E2b-Sandbox-Port | integration/scripts/client-variables.test.ts | asks a name server itself
sibling: the same headers in place of the name, of either family | not tried => the server on that port answers | conformance/network/ports.test.ts | is reached by the routing headers of either family
sibling: http_proxy set in the shell that runs the scripts | requests of the scripts to this machine went to the proxy => no_proxy has .localhost and the loopback, once, beside the user's own entries | integration/scripts/environment.test.ts | keeps the user's proxy for other machines, and none for this one
`,
  "versions, and what is not there": `
npm e2b: the oldest version that works on a default install | 2.14.1, and no page said so => docs/using.md names 2.7.0 | integration/scripts/client-variables.test.ts | npm \`e2b\`
Python e2b: the oldest version | 2.26, and no page said so => docs/using.md names 2.7 | integration/scripts/client-variables.test.ts | Python \`e2b\`
npm @e2b/code-interpreter: the oldest version | 2.7.0, and no page said so => docs/using.md names 2.7.0 | integration/scripts/client-variables.test.ts | npm \`@e2b/code-interpreter\`
Python e2b-code-interpreter: the oldest version | 2.9.0, and no page said so => docs/using.md names 2.9.0 | integration/scripts/client-variables.test.ts | Python \`e2b-code-interpreter\`
clients that build https://<port>-<id>.<domain> themselves | no page said what they need => docs/using.md names the domain, its DNS entries, the certificate and E2B_DOMAIN | integration/scripts/client-variables.test.ts | <domain>\` themselves
the published SDK with E2B_DOMAIN, a key and the certificate alone | not tried => creates, reads and kills sandboxes, and getHost gives the platform's domain | integration/orchestrator/api/site.test.ts | the published SDK needs the domain, a key
s3fs, sshfs, rclone mount in a sandbox | no page said that they fail => docs/using.md says that FUSE cannot be mounted, and names volumes and copying commands | integration/scripts/client-variables.test.ts | FUSE file systems
a server of HTTP/2 without TLS, or of gRPC, through the edge | no page said that it fails => docs/using.md says that programs inside alone reach it, and that gRPC-Web and Connect pass | integration/scripts/client-variables.test.ts | HTTP/2 without TLS, gRPC among them
bwrap, as coding agents start it | no page said that it fails => docs/using.md names the agents' flags, such as codex --sandbox danger-full-access | integration/scripts/client-variables.test.ts | \`bwrap\`
Landlock, as coding agents use it | no page said that it fails => docs/using.md says that it answers "Function not implemented" | integration/scripts/client-variables.test.ts | Landlock
tailscaled, OpenVPN: no /dev/net/tun | no page said so => docs/using.md names the mode without it | integration/scripts/client-variables.test.ts | /dev/net/tun
nmap as root: "Couldn't open a raw socket" | no page said so => docs/using.md names --unprivileged | integration/scripts/client-variables.test.ts | packet sockets
steamcmd, wine32: "Bad system call" | no page said so => docs/using.md says that 32-bit programs do not run | integration/scripts/client-variables.test.ts | 32-bit programs
postgres:alpine: "could not resize shared memory segment" | the page said that programs write instead => docs/using.md names the setting | integration/scripts/client-variables.test.ts | With musl
landlock_create_ruleset in a sandbox | not said what it answers => ENOSYS, as the page says | unit/agent/containers/seccomp.test.ts | landlock_create_ruleset
sibling: agents whose own sandbox is opt-in | no page said whether they need a flag => docs/using.md says that they need none | integration/scripts/client-variables.test.ts | Agents whose sandbox is opt-in
sibling: unshare -Ur as root in a sandbox | not tried => refused | conformance/sandboxes/isolation.test.ts | root inside cannot change the network, mount, or load modules
sibling: pkey_alloc, as Chromium calls it | allowed, and a restored Chromium crashed at its next page => ENOSYS, as on a processor without such keys | unit/agent/containers/seccomp.test.ts | pkey_alloc
sibling: clients of gRPC-Web, which the table had not | 415 => docs/using.md names them with any version | integration/scripts/client-variables.test.ts | clients of gRPC-Web
sibling: Python e2b 1.5.0 to 1.5.2 | the client raises => docs/using.md says what such clients get | integration/scripts/client-variables.test.ts | Python clients from 1.5.0
`,
  "requests that are written by hand": `
JSON with a byte order mark, from PowerShell or VS Code's REST client | 400 "body is not valid JSON" => it is read | integration/shared/http-bodies.test.ts | JSON with
the body as curl's own type, application/x-www-form-urlencoded | 400 that did not say what was sent => 400 that names the type that was sent | integration/shared/http-bodies.test.ts | names it
a body that is larger than the route takes | 413 without the limit => 413 with the limit in bytes | integration/shared/http-bodies.test.ts | says what is wrong, and repeats nothing of it
E2B_API_URL that ends with a slash, before /v2/sandboxes in curl | 404 "no route" => 404 with the path that was meant | integration/shared/http-bodies.test.ts | a path with a slash too many is answered
startedAfter=the output of date -Iseconds in curl, whose + means a space | 400 must match format "date-time" => the time that was meant | integration/orchestrator/sandboxes/lists.test.ts | takes an offset whose + the query has made a space
startedAfter from Python's isoformat() without an offset | 400 must match format "date-time" => 400 that shows a time with its offset | integration/orchestrator/sandboxes/lists.test.ts | shows a right one
the key in quotes, as docker run --env-file keeps them | 401 with the form of a key => 401 that says that the quotes are too much | integration/orchestrator/access/key-scopes.test.ts | is refused with what is wrong, and not repeated
a page with Sentry or OpenTelemetry, whose requests have baggage or traceparent | the browser refused to send the request => the preflight admits the headers | integration/orchestrator/api/browsers-and-documents.test.ts | preflights admit what tracing
sibling: JSON in Latin-1, from a Windows console | the letters were stored as U+FFFD => 400 that says that the body is not UTF-8 | integration/shared/http-bodies.test.ts | says what is wrong, and repeats nothing of it
sibling: JSON in UTF-16, as PowerShell 5 writes files | 400 "body is not valid JSON" => 400 that says that the body is UTF-16 | integration/shared/http-bodies.test.ts | says what is wrong, and repeats nothing of it
sibling: a body with Content-Encoding: gzip | 400 "body is not valid JSON" => 415 that names the encoding | integration/shared/http-bodies.test.ts | names its encoding
sibling: milliseconds for the start of metrics | 400 "must be <= 99999999999" => 400 that says that the time is in seconds | unit/shared/http/queries.test.ts | says what the value must be
sibling: a leap second as startedAfter | no time at all: an empty list, or an error of PostgreSQL => the second that follows | integration/orchestrator/sandboxes/lists.test.ts | and a leap second
sibling: the API key behind Authorization: Bearer | 401 "Access tokens are discontinued" => 401 that names the header of keys | integration/orchestrator/access/key-scopes.test.ts | is refused with what is wrong, and not repeated
sibling: a stream of events that goes on with Last-Event-ID, in a page of another origin | the browser refused to send the request => the preflight admits the header | integration/orchestrator/api/browsers-and-documents.test.ts | preflights admit what tracing
`,
  "queries and forms of clients in other languages": `
a Go client that repeats metadata for each pair (url.Values.Add), GET /v2/sandboxes | an empty list: the pairs were joined by a comma, into one => the sandboxes that have every pair | integration/orchestrator/sandboxes/lists.test.ts | match every pair of metadata that is repeated
PHP's http_build_query and qs write state[0]=running | ignored: running and paused sandboxes => 400 that says to write state, without brackets | unit/shared/http/unknown-fields.test.ts | writes it, is refused with the form that is read
metadata[user]=abc in the query of a list, as Rails and qs write maps | ignored: all sandboxes of the project => 400 that shows the form of metadata | unit/shared/http/unknown-fields.test.ts | writes it, is refused with the form that is read
orderAsc=True, as Python's requests writes it | 400 must be boolean => the oldest events first | unit/shared/core.test.ts | a switch in a query is taken in
a Python client without the SDK: httpx with data={"path": …} and files, POST /files | 200, and the file was written as "upload" in the home => the file is at the path | integration/envd/files/form-paths.test.ts | a field 'path' before the file is the file's path
sibling: one key of metadata that is repeated with two values | not tried => 400 | integration/orchestrator/sandboxes/lists.test.ts | match every pair of metadata that is repeated
sibling: state[] and limit[], as Faraday and Rails write lists | "did you mean" without the brackets => 400 that says to leave out the brackets | unit/shared/http/unknown-fields.test.ts | writes it, is refused with the form that is read
sibling: parameters with brackets that no route knows | not tried => ignored still | unit/shared/http/unknown-fields.test.ts | a parameter with brackets that is no known one is ignored
sibling: orderAsc=1, as PHP writes true | 400 must be boolean => the oldest events first | unit/shared/core.test.ts | a switch in a query is taken in
sibling: GET /v1/sandboxes and /api/v1/sandboxes, as other services have it | 404 "no route" => 404 that names the path that is there | integration/shared/http-bodies.test.ts | a path of another version, or of another base, is answered
sibling: curl -F file=@x -F path=/y, the path behind the file | 200, and the file was written as "x" in the home => 400 that says where the file was written, and where the path belongs | integration/envd/files/form-paths.test.ts | a field 'path' behind the file is refused
`,
  "webhooks, volumes and rules as they are written elsewhere": `
a receiver that compares e2b-signature with base64 without padding, as E2B's documentation says since January 2026 | three of four deliveries failed: the header was base64url => base64 and base64url are the same, for any body | unit/orchestrator/webhooks/pure.test.ts | base64 and base64url of the older signature are the same
sibling: a receiver that parses the body and writes it again before it checks | not tried => the same bytes | unit/orchestrator/webhooks/pure.test.ts | also for receivers that read it and write it again
a receiver without its intermediate certificates (UNABLE_TO_VERIFY_LEAF_SIGNATURE) | "the connection failed" => an error of TLS that says what is missing | unit/orchestrator/webhooks/pure.test.ts | is one of TLS, and says what was wrong
a receiver behind a redirect to https or to a trailing slash | "redirects are not followed" => the log names the URL to set | unit/orchestrator/webhooks/pure.test.ts | says which URL the webhook may have
sibling: a name that cannot be resolved at the moment (EAI_AGAIN) | "the name was not found" => it could not be resolved now | unit/orchestrator/webhooks/pure.test.ts | EAI_AGAIN
sibling: http:// to a port that speaks TLS alone | "the connection failed" => what was answered is not HTTP/1.1 | unit/orchestrator/webhooks/pure.test.ts | HPE_INVALID_CONSTANT
allowOut and rules with a URL, a port or a path | "not an address, CIDR range or domain" => the refusal says what to write | unit/orchestrator/network-policy/network.test.ts | http://a.com
sibling: svc network check with a URL | 400 => its host and port are checked | integration/cli/day-two.test.ts | is asked what it may reach
sibling: svc network check github.com:22 where allowOut has github.com | denied: "nothing allows it" => denied: an allowed name counts on ports 80 and 443 only | unit/shared/policy/decide.test.ts | a name on another port
a secret with a line break at its end in a header of a rule | 502 "has characters that no header can have" => 502 that says that it ends in a line break, and not the value | unit/agent/egress/placeholders.test.ts | and what was wrong only
a volume mounted at /data/ | "must be an absolute, clean path" => the refusal says to write /data | unit/orchestrator/volumes/mounts.test.ts | as it must be written
sibling: a volume mounted by its id | "names no volume of the project" => the refusal says the name | unit/orchestrator/volumes/mounts.test.ts | is answered with the name
sibling: a client of events that sends an empty Last-Event-ID | 400, after which browsers do not connect again => a new stream | integration/orchestrator/webhooks/events.test.ts | says that it has seen no event
`,
  "the console in browsers and behind proxies": `
nginx with Host $host:$server_port in front, as in code-server 6166 | 403 "must come from its own page" at each log-in => the scheme's port counts as none | unit/orchestrator/console/rules.test.ts | is of the host
oauth2-proxy, Cloudflare Access: the proxy's log-in has ended, and the request is sent on to it | "The platform does not answer. Is it running?" => the page says to load it again to log in there | unit/console/base/foreign.test.ts | sent on to another host's log-in
a log-in page with status 200 in place of JSON | Unexpected token '<', or an act that counted as done => told as the proxy's log-in, and not listed as done | unit/console/base/foreign.test.ts | in place of an answer is no success
nginx's client_max_body_size, an upload of 2 MB | the HTML of the 413 page as a message => the sentence that names the setting | unit/console/base/foreign.test.ts | is told in words, not as HTML
cookies and storage blocked, as in a private window | an empty page: SecurityError while it loads => the page opens | unit/console/base/browsers.test.ts | where the browser refuses its storage
Safari 16 and 17.3, Firefox 115: AbortSignal.any is not a function | a terminal that connects again and again => it connects | unit/console/base/browsers.test.ts | no AbortSignal.any
Enter that ends a word of a Japanese input method, in Ctrl K | an entry was chosen with half a word => the input method has the key | unit/console/base/browsers.test.ts | is taken by the page or by the input method
a tab that is older than an upgrade opens a terminal | Failed to fetch dynamically imported module, and for charts nothing => a sentence that says to load the page again | unit/console/base/browsers.test.ts | a part that an upgrade took away
a key copied from where its middle is hidden: svc_ab…beef | "The platform does not answer. Is it running?" => the character is named | unit/console/session.test.ts | whose middle is hidden is refused here
sibling: the line SVC_API_KEY=… of .svc/env | a wrong admin token => the key is taken out of the line | unit/console/session.test.ts | what is pasted into the log-in may be
sibling: two tabs, of which one logs in with the key of another project | one project under the name of the other => both show the new one | unit/console/session.test.ts | a tab becomes as another one that
sibling: Ctrl K with a Cyrillic layout | the browser's own search => the page's | unit/console/base/browsers.test.ts | opens the search, or does not
sibling: a folder dropped on the upload, a file changed since it was chosen | sent again for a minute, then "The platform does not answer" => named at once | unit/console/base/foreign.test.ts | a file that the browser cannot read
sibling: keys typed after a laptop has slept | held for ever behind a request on a dead connection => given up after a minute, and later ones arrive | unit/console/sandbox/input-queue.test.ts | input on a dead connection is given up
sibling: a thousand lines of log when the tab opens | the oldest of them, and nothing was followed => the newest, and new ones as they come | unit/console/parts/end-follower.test.ts | are shown from their end
sibling: a .env file with comments and export, pasted into the form | variables named "# keys" and "export KEY" => comments are left out, and KEY is set | unit/console/create-body.test.ts | a pasted file of settings
`,
};
