/** Cases of the section. Columns: see ../table.ts. */
export const egress: Readonly<Record<string, string>> = {
  "early answers to a request that is still being sent": `
a PUT of 8 MiB to a host with a rule, or to a name on port 80, that answers 413 at once and closes | 502 in 20 of 25: the failed write lost the answer that was in the socket => the client reads the 413, in each of 15 uploads | integration/agent/egress/transform-answers.test.ts | an upload that the destination refuses at once
sibling: Expect: 100-continue, and a destination that sends 100 and 103 before it has the body | not tried => the client reads 100 and 103 while it holds the body back, and the final answer after it | integration/agent/egress/transform-streams.test.ts | 100-continue and early hints are forwarded as soon as they arrive
sibling: Expect with another value than 100-continue | 417: the rewriter's own server refused it => the request is forwarded with its Expect, and the destination answers | integration/agent/egress/transform-requests.test.ts | of an unknown expectation are the destination's to answer
sibling: a body that the destination leaves unread, with a second request hidden in it | not tried => the next request is served, the hidden one never | integration/agent/egress/unread-bodies.test.ts | hidden in a body that the destination leaves unread
sibling: an answer whose body breaks off | not tried => the client gets the status and what there is, and then an error: the answer does not look whole | integration/agent/egress/transform-streams.test.ts | an answer that breaks off at the destination
`,
  "answers that curl and browsers read": `
an answer with line feeds alone (CGI scripts, printf and nc) | 502 without a reason => the client reads the status, and the body until the end of the connection | integration/agent/egress/transform-answers.test.ts | line feeds alone
an answer with a NUL byte in a header | 502 with the code of a parser => 502 that names the header and the NUL byte, in the log too, without a code of the parser | integration/agent/egress/transform-answers.test.ts | a NUL
sibling: a header folded over two lines | 502 with the code of a parser => the header arrives as one line | integration/agent/egress/transform-answers.test.ts | a folded header
sibling: Content-Length and Transfer-Encoding: chunked in one answer | 502 with the code of a parser => the chunks are the body, and no Content-Length is forwarded | integration/agent/egress/transform-answers.test.ts | both framings
sibling: Transfer-Encoding: gzip, chunked | not tried => the bytes are forwarded with the name of their coding | integration/agent/egress/transform-answers.test.ts | another transfer coding
sibling: 426 with Upgrade | not tried => Upgrade is forwarded | integration/agent/egress/transform-answers.test.ts | 426
sibling: 103 with other headers, and 104 with line feeds alone | 103 arrived, 104 was not tried => both arrive, whole, before the answer | integration/agent/egress/transform-answers.test.ts | informational responses
sibling: informational answers without end | 502 that said so already => 502 that says so, in the log too | integration/agent/egress/transform-answers.test.ts | endless hints
sibling: two different lengths | 502 with the code of a parser => 502 that says that there is more than one Content-Length, in the log too | integration/agent/egress/transform-answers.test.ts | two lengths
sibling: TLS on a port for plain HTTP | 502 with the code of a parser => 502 that says that the destination speaks TLS, in the log too | integration/agent/egress/transform-answers.test.ts | TLS
sibling: the end of the connection in place of an answer | 502: the connection was reset => 502 that says that the connection was closed before a whole answer, in the log too | integration/agent/egress/transform-answers.test.ts | nothing at all
`,
  "requests to upgrade": `
POST with Connection: Upgrade, Upgrade: tcp and a body, as Docker's exec and kubectl send it | 400: a request to switch protocols must be a GET without a body => the destination gets the POST with its body and without Connection: close, its 101 arrives, and bytes behind the body reach it after that | integration/agent/egress/transform-answers.test.ts | a POST that asks to upgrade
sibling: an upgrade whose body is in chunks | 400: it must be a GET without a body => refused, and nothing of it reaches the destination | integration/agent/egress/transform-requests.test.ts | an upgrade with a body in chunks
sibling: POST with Upgrade: h2c and a body, as curl --http2 sends it | not tried => a plain POST with its body and the rule's header: no upgrade is forwarded | integration/agent/egress/transform-requests.test.ts | curl's upgrade to h2c
sibling: Upgrade: h2c, WebSocket, HTTP/2.0, TLS/1.0 | not tried => only websocket is asked for, and its 101 arrives | integration/agent/egress/transform-requests.test.ts | h2c in a list of upgrades
sibling: a destination that switches to a protocol that was not asked for | not tried => 502 that says so | integration/agent/egress/transform-requests.test.ts | a destination that switches to a protocol
sibling: a WebSocket to a host with a rule | not tried => its messages pass both ways, and the request has the rule's header | integration/agent/egress/transform.test.ts | WebSocket messages pass in both directions
`,
  "orderly and other endings": `
a destination that declines an upgrade with 401 and socket.end() | the connection could end with RST: a server without an error listener died of ECONNRESET => the client gets the 401, and the destination an orderly end without an error | integration/agent/egress/transform-answers.test.ts | declines an upgrade and ends
sibling: a destination that ends an upgraded connection first | not tried => the client gets the last bytes, and the destination an orderly end without an error | integration/agent/egress/transform-answers.test.ts | ends an upgraded connection first
sibling: a client that ends its side of an upgraded connection first | not tried => the destination gets all of it and its end, and its last words arrive | integration/agent/egress/transform-streams.test.ts | an upgraded connection is a raw stream
sibling: a destination that resets an upgraded connection | an orderly end, so that a cut stream looked complete => ECONNRESET for the client | integration/agent/egress/transform-answers.test.ts | an upgraded connection that the destination resets
sibling: a WebSocket that is declined with 200 | not tried => the client gets the answer, and the end of the connection | integration/agent/egress/transform.test.ts | a refused WebSocket shows
sibling: a client that ends its side behind a plain request | not tried => it still gets its answer | integration/agent/egress/transform-streams.test.ts | a client that has ended its side
sibling: a destination that has ended its connection before the request | not tried => 502 at once that says so | integration/agent/egress/transform-requests.test.ts | a destination that has ended its connection
`,
  "methods that the parser cannot carry": `
LIST (Vault) to a host with a rule, or to a name on port 80 | 400: this is not an HTTP/1.1 request => 501 that names LIST | integration/agent/egress/transform-answers.test.ts | LIST
sibling: the same in small letters | 400: this is not an HTTP/1.1 request => 501 that names list | integration/agent/egress/transform-answers.test.ts | list
sibling: BREW | 400: this is not an HTTP/1.1 request => 501 that names BREW | integration/agent/egress/transform-answers.test.ts | BREW
sibling: TRACE, whose answer would show the rule's headers | not tried => 405 where a rule sets headers, forwarded where none does | integration/agent/egress/transform-requests.test.ts | TRACE, whose answer repeats
sibling: PRI, with which HTTP/2 begins | not tried => refused, and nothing reaches the destination | integration/agent/egress/transform-requests.test.ts | HTTP/2 without asking
sibling: line feeds alone | 400: this is not an HTTP/1.1 request => 400 that adds: a line of it does not end with CR LF | integration/agent/egress/transform-answers.test.ts | line feeds alone
sibling: letters beyond ASCII, or a blank, in the target | 400: this is not an HTTP/1.1 request => 400 that adds what is wrong with the target | integration/agent/egress/transform-answers.test.ts | a blank in its target
sibling: an upload in chunks that breaks off with a chunk without a size | the end of the connection without an answer => 400 at once that names the chunk | integration/agent/egress/transform-answers.test.ts | an upload whose body breaks off
`,
  "failures of a proxy on the way out": `
a wrong password of the egress proxy | "cannot be reached: it failed", in the answer and in the log => "egress proxy: it refused the user name or the password" in both, and the password in neither | integration/agent/egress/proxy-failures.test.ts | a wrong password
a SOCKS proxy that wants another kind of authentication | "it failed" => "it wants another kind of authentication", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | no common authentication
a SOCKS proxy whose policy forbids the connection (reply 2) | "it failed" => "it does not allow the connection", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | a connection that it does not allow
a destination that refuses the SOCKS proxy (reply 5) | "it failed" => "the destination refused the connection", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | a refused connection
sibling: the general failure of a SOCKS proxy (reply 1) | "it failed" => "it refused the connection without a known reason", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | a general failure
sibling: a network that the SOCKS proxy does not reach (reply 3) | "it failed" => "it finds no route to the destination's network", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | an unreachable network
sibling: a host that the SOCKS proxy does not reach (reply 4) | "it failed" => "it cannot reach the destination", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | an unreachable host
sibling: a destination that is silent for the SOCKS proxy (reply 6) | "it failed" => "the destination did not answer it in time", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | an expired TTL
sibling: a SOCKS proxy without CONNECT (reply 7) | "it failed" => "it does not support outgoing connections", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | an unsupported command
sibling: a SOCKS proxy that knows no addresses of that kind (reply 8) | "it failed" => "it does not support the destination's kind of address", in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | an unsupported address
sibling: a SOCKS proxy that closes in place of an answer | noticed only when the limit of 30 s was over => "it closed the connection" at once, in the answer and in the log | integration/agent/egress/proxy-failures.test.ts | the end of the connection
sibling: an egress proxy that is not there | "connection refused", which read as the destination's => "egress proxy: it cannot be reached (ECONNREFUSED)" in the log | integration/agent/egress/proxy-failures.test.ts | a proxy that is not there
sibling: a wrong password of the egress proxy, for a program in a sandbox | not tried => blocked: nothing leaves, past the proxy neither | conformance/network/egress-proxy.test.ts | uses its credentials
sibling: a company's proxy that refuses with 403, and one that is down | not tried => 502 for the client; the log has the status, and ECONNREFUSED | integration/agent/egress/company-proxy.test.ts | what the company's proxy refuses
sibling: a company's proxy that answers 407, with a password and without | "status 407" => whose user name and password are wanted, or refused | integration/agent/egress/proxy-failures.test.ts | the 407 of a company's proxy
sibling: one that offers NTLM or Negotiate alone | "status 407" => that it wants these, which are not sent | integration/agent/egress/proxy-failures.test.ts | other kinds alone
`,
  "TLS that a program does not begin with a rule's host": `
a program that does not trust the node's authority (uv, rustls with its own roots) | the log has the code of OpenSSL => the log says so, and names SSL_CERT_FILE | integration/agent/egress/transform-failures.test.ts | does not trust the node's authority
gRPC, which offers HTTP/2 alone | the log has the code of OpenSSL => the log says that a host with a rule is reached by HTTP/1.1 | integration/agent/egress/transform-failures.test.ts | for HTTP/2 only
sibling: a program that ends its connection in the handshake without an alert (Node) | held for 10 s, and no reason in the log => ended at once, with the reason in the log | integration/agent/egress/transform-failures.test.ts | does not trust the node's authority
sibling: a program with TLS 1.1 at most | the log has the code of OpenSSL => the log says that it offers no version from 1.2 on | integration/agent/egress/transform-failures.test.ts | has no new TLS
sibling: a destination of a rule that does not speak TLS | 502 with the code of OpenSSL => 502 that says so | integration/agent/egress/transform-failures.test.ts | answers without TLS
`,
  "a resolver of the node that cannot answer": `
two name servers in resolv.conf, the first of which answers SERVFAIL | SERVFAIL for sandboxes, while the machine resolves the name => the second one's addresses | integration/agent/egress/dns.test.ts | of a resolver the next one is asked
sibling: a first one that answers REFUSED or NOTIMP | the same => the second one's addresses | integration/agent/egress/dns.test.ts | of a resolver the next one is asked
sibling: a second one that says NXDOMAIN | not tried => NXDOMAIN: no third one is asked | integration/agent/egress/dns.test.ts | whose NXDOMAIN counts
sibling: a question whose packet is lost | SERVFAIL after 2.5 s => sent again after one second, and answered | integration/agent/egress/dns.test.ts | whose packet is lost is sent again
`,
  "hosts of services": `
mongodb+srv:// in a sandbox that may reach the internet | no hosts: questions for SRV got an empty answer => the hosts | integration/agent/egress/dns-policy.test.ts | as drivers with mongodb+srv:// need them
sibling: a library that looks whether a domain takes mail (MX) | an empty answer => the hosts | integration/agent/egress/dns-policy.test.ts | hosts of a service and of a name's mail
sibling: SRV of a name that a policy of domains does not allow | refused => refused, as before | integration/agent/egress/dns-policy.test.ts | an unlisted name is not resolved at all
`,
  "why a connection was denied": `
git over ssh to github.com, which allowOut has, in the network log | add "140.82.112.3" to allowOut => the same, and that an allowed name counts on ports 80 and 443 only | unit/orchestrator/network-policy/explanation.test.ts | git over ssh
sibling: TLS without SNI to an allowed name | add its address => the same, and that a name counts where the program says it | unit/orchestrator/network-policy/explanation.test.ts | TLS without SNI
sibling: CONNECT to an allowed name on port 8443, through the node's proxy | add the name, which is there already => add its address | unit/orchestrator/network-policy/explanation.test.ts | a port that was named to the node's proxy
`,
  "resolvers without EDNS": `
a node whose resolver answers FORMERR to EDNS (meta-balena 3656), under a policy with domains | FORMERR, while the machine resolves the name => asked again without EDNS | integration/agent/egress/edns.test.ts | a resolver that refuses EDNS
sibling: the same for a question for CNAME | FORMERR => asked again without EDNS | integration/agent/egress/edns.test.ts | a resolver that refuses EDNS
sibling: a resolver that answers FORMERR to everything | FORMERR => asked once more, and FORMERR | integration/agent/egress/edns.test.ts | that takes no question
`,
};
