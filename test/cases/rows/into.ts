/** Cases of requests into a sandbox, through the edge and the node's proxy. Columns: see ../table.ts. */
export const into: Readonly<Record<string, string>> = {
  "ends of connections": `
a Node server whose upgrade handler answers socket.end("HTTP/1.1 401 …"), without an error listener; one visitor | he gets 401, then the server dies of ECONNRESET => twenty visitors get 401, and the server runs on | integration/orchestrator/edge/as-without-proxy.test.ts | a server without a handler for errors outlives visitors
an upgrade declined with an answer and the end of the connection | the server's connection is reset => server and client see the same end as between the two alone, straight and through the node's proxy | integration/orchestrator/edge/as-without-proxy.test.ts | an upgrade declined with an
an upgrade declined with an answer that ends with the connection | the server's connection is reset => the same end as without a proxy | integration/orchestrator/edge/as-without-proxy.test.ts | an upgrade declined with an
an upgrade declined on a connection that the server keeps | the server's connection is reset => the same end as without a proxy | integration/orchestrator/edge/as-without-proxy.test.ts | an upgrade declined on a connect
a connection that is half-way at its end: one side has ended, the other still sends | not tried => it stays half-open in either direction, and the last bytes arrive | integration/orchestrator/edge/upgrades.test.ts | keeps a half-open connection open, in either direction
sibling: a switched connection that the server ends first | not tried => the same end as without a proxy | integration/orchestrator/edge/as-without-proxy.test.ts | an upgrade that the server ends first
sibling: a switched connection that the client ends first | not tried => the same end as without a proxy | integration/orchestrator/edge/as-without-proxy.test.ts | an upgrade that the client ends first
sibling: a switched connection that the client or the server resets | not tried => the other side sees the reset, as without a proxy | integration/orchestrator/edge/as-without-proxy.test.ts | resets
sibling: an event stream whose client leaves | not tried => the same end as without a proxy, at the server and at the client | integration/orchestrator/edge/as-without-proxy.test.ts | a stream that its client leaves
sibling: an answer until the end of the connection, as HTTP/1.0 servers give it | not tried => the same status and the same ends as without a proxy | integration/orchestrator/edge/as-without-proxy.test.ts | an answer until the end of the c
sibling: an answer in chunks that breaks off, for a client of HTTP/1.0 | an orderly end, so that half a body looked whole => the client's connection is reset | integration/orchestrator/edge/as-without-proxy.test.ts | a body without a length that breaks off is reset
sibling: a client that resets its connection while it is refused an upgrade or a CONNECT | the program ended => the edge and the node's proxy go on, at every moment of the reset | integration/orchestrator/edge/resets.test.ts | the programs survive the reset of a client
`,
  "early answers to uploads": `
curl -T 30MB to a server that answers 413 at once and closes | 502 in 20 of 25 => 413 in 25 of 25, with a body that has a length | integration/orchestrator/edge/as-without-proxy.test.ts | with a length
the same, the answer's body until the end of the connection | 502 in 20 of 25 => 413 in 25 of 25, the status first and then the end | integration/orchestrator/edge/as-without-proxy.test.ts | at once and closes is heard
sibling: the same over HTTP/2 | not tried => 413 and its body arrive, the stream ends, and the session serves the next request | integration/shared/front.test.ts | an answer that comes before the end of an upload reaches the client
sibling: a server that answers 507 and keeps its connection, with 64 MB unread | not tried => 507 arrives, and the client's connection serves the next request | integration/orchestrator/edge/forwarding-connections.test.ts | that is answered before all of its body was sent
sibling: PUT with Expect: 100-continue, refused with 413 | not tried => 413 arrives before the body is sent, and the connection ends | integration/orchestrator/edge/forwarding.test.ts | is refused before its body when the server refuses it
`,
  "answers that curl and browsers read": `
python3 -m http.server --cgi with a shell script (lines end with LF) | 502 without a reason => 200 with the script's body and Content-Type | integration/orchestrator/edge/answers.test.ts | headers of CGI
printf 'HTTP/1.1 200 OK', two LF and a body, piped to nc -l | 502 without a reason => 200 with the body | integration/orchestrator/edge/answers.test.ts | line feeds alone
sibling: LF line ends with a Content-Length | 502 => the status, each header and the body | integration/orchestrator/edge/answers.test.ts | line feeds alone, with a length
sibling: a header folded over two lines | 502 => the header on one line | integration/orchestrator/edge/answers.test.ts | a folded header
sibling: Content-Length and chunked at once | 502 => read and forwarded as chunked | integration/orchestrator/edge/answers.test.ts | both framings
sibling: chunks with extensions, and blanks behind their sizes | not tried => the chunks' bytes, without both | integration/orchestrator/edge/answers.test.ts | extensions and blanks behind the sizes of chunks
sibling: an empty line before the status | not tried => 200 with its body | integration/orchestrator/edge/answers.test.ts | an empty line before it
sibling: an escape character in a header | 502 => a blank in its place | integration/orchestrator/edge/answers.test.ts | a control character in a header
sibling: HTTP/1.2 in the status line | 502 => 200 with its body | integration/orchestrator/edge/answers.test.ts | an unknown version
sibling: more bytes than the Content-Length, then the end | not tried => the bytes of the length alone | integration/orchestrator/edge/answers.test.ts | more bytes than its length
sibling: a folded header in the answer that declines an upgrade | 502 => the same as for other answers: the header on one line | integration/orchestrator/edge/upgrades.test.ts | a folded header
`,
  "answers that stay refused": `
a banner of SSH in place of an answer | 502 without a reason => 502 that says that the answer does not begin with HTTP/1.1, without a code of the parser | integration/orchestrator/edge/answers.test.ts | another protocol
a server that closes without an answer, or in the middle of a head | 502 without a reason => 502: it closed the connection before it sent a whole answer | integration/orchestrator/edge/answers.test.ts | is refused in words
sibling: a server of TLS on a port of HTTP | 502 without a reason => 502: it speaks TLS, and httpsPorts is the way out | integration/orchestrator/edge/answers.test.ts | TLS
sibling: a server of HTTP on a port of httpsPorts | 502: the port is not open => 502: it does not speak TLS, and httpsPorts names the port | integration/orchestrator/edge/reaching.test.ts | a server that speaks HTTP
sibling: a server on a port of httpsPorts that closes, or has HTTP/2 alone | 502: the port is not open => 502 that says which of these it was | integration/orchestrator/edge/reaching.test.ts | on an https port is named
sibling: a server of HTTP/2 without TLS | 502 without a reason => 502: it speaks HTTP/2 without TLS | integration/orchestrator/edge/answers.test.ts | HTTP/2
sibling: two lengths that differ | 502 without a reason => 502: more than one Content-Length | integration/orchestrator/edge/answers.test.ts | two lengths
sibling: the same length twice | 502 without a reason => 502: more than one Content-Length | integration/orchestrator/edge/answers.test.ts | the same length twice
sibling: a length below zero | 502 without a reason => 502: the Content-Length of its answer is not a number | integration/orchestrator/edge/answers.test.ts | a length below zero
sibling: a header line without a colon | 502 without a reason => 502: a header of its answer has no valid name | integration/orchestrator/edge/answers.test.ts | a line without a colon
sibling: a NUL in a header | 502 without a reason => 502 that names the header | integration/orchestrator/edge/answers.test.ts | a NUL in a header
sibling: a status of four digits | 502 without a reason => 502: no status of three digits | integration/orchestrator/edge/answers.test.ts | a status of four digits
sibling: a request to upgrade to a server that speaks no HTTP | 502 without a reason => 502 with the same words as for other requests | integration/orchestrator/edge/upgrades.test.ts | gets 502 with the reason
`,
  "informational responses": `
res.writeEarlyHints({link: [a, b]}) | lost => a 103 with both Link headers comes before the answer | integration/orchestrator/edge/answers.test.ts | comes behind its informational responses, whichever they are
103 with other headers than Link | lost => the 103 has them; headers of one connection and framing are left out | integration/orchestrator/edge/answers.test.ts | comes behind its informational responses, whichever they are
104 Upload Resumption Supported | lost => forwarded with its header, also with LF line ends | integration/orchestrator/edge/answers.test.ts | comes behind its informational responses, whichever they are
103 and 104 before a 101 | lost => forwarded before the 101 | integration/orchestrator/edge/answers.test.ts | and upgrades have them too
sibling: 103 before the answer that declines an upgrade | lost => forwarded before that answer | integration/orchestrator/edge/upgrades.test.ts | hints before it
sibling: informational responses without end | not tried => sixteen are forwarded, then 502 says: it sent informational answers without end | integration/orchestrator/edge/answers.test.ts | behind endless informational responses is given up
sibling: 103 to a client of HTTP/2 | not tried => a block of headers with status 103 before the answer | integration/shared/front.test.ts | status, headers with several values, trailers and informational answers cross
sibling: 103 to a client of HTTP/1.0, which knows none | not tried => the answer alone | integration/orchestrator/edge/answers.test.ts | comes behind its informational responses, whichever they are
`,
  "upgrades by POST": `
POST /exec/1/start with Connection: Upgrade, Upgrade: tcp and a body of JSON (docker exec) | 200: the server never sees the upgrade => 101; the server gets method, body and protocol, and bytes go both ways | integration/orchestrator/edge/upgrade-requests.test.ts | Docker's exec
the same without a body (docker attach) | 200: the server never sees the upgrade => 101, and bytes go both ways | integration/orchestrator/edge/upgrade-requests.test.ts | Docker's attach
POST with Upgrade: SPDY/3.1 (kubectl exec) | 200: the server never sees the upgrade => 101 with the same protocol, and bytes go both ways | integration/orchestrator/edge/upgrade-requests.test.ts | kubectl's exec
sibling: a body in two pieces, with bytes of the new protocol right behind it | not tried => the server gets the whole body first, and the bytes behind it after the 101 | integration/orchestrator/edge/upgrade-requests.test.ts | reaches the server once its body has come
sibling: a POST to upgrade that the server declines, with a request hidden in its body | not tried => the server's 409 arrives, and the server reads one request | integration/orchestrator/edge/upgrade-requests.test.ts | nothing of the body is read as a request
sibling: a POST to upgrade with more than 64 KiB of body, with a length or in chunks | not tried => served whole as if no upgrade had been asked for, and the connection goes on | integration/orchestrator/edge/upgrades.test.ts | is served as if it had not been asked for
sibling: a client that resets before its body has come | the program ended => the edge and the node's proxy go on | integration/orchestrator/edge/resets.test.ts | a request to switch without its body
`,
  "servers on an earlier address": `
python3 -m http.server --bind $(hostname -I), then fork | 502 "port is not open" in the copy => the fork's server answers | conformance/snapshots/snapshots.test.ts | own address alone is reached in copies
the same, then a snapshot and a sandbox made of it | 502 "port is not open" => its server answers, also where the snapshot was taken of a fork | conformance/snapshots/snapshots.test.ts | own address alone is reached in copies
the same as the start command of a template | 502 "port is not open" in its sandboxes => the server answers | conformance/templates/start.test.ts | listens on the address of its build alone
the same, then a pause to the disk and a resume | 502 "port is not open" => the server answers | conformance/snapshots/snapshots.test.ts | and after a pause to the disk
sibling: a server on an address of the sandbox that is neither the loopback nor the newest | nothing answers => envd's tunnel reaches it | integration/envd/tunnel.test.ts | own addresses alone is reached
sibling: a copy of a copy, and connections inside it over the earlier addresses | they ended in the copy => all three sandboxes talk on, with the addresses of both sources | docker/runtime/inner-connections.test.ts | connections inside a sandbox go on in the original and in the copy
sibling: servers on 127.0.0.1, ::1, 0.0.0.0 or :: alone | not tried => each is reached, and each direction ends by itself | integration/envd/tunnel.test.ts | is reached, and each direction ends by itself
sibling: a port where none of the addresses has a server | not tried => the tunnel answers 502 | integration/envd/tunnel.test.ts | a closed port fails at once
`,
  "transfer codings": `
Transfer-Encoding: gzip, chunked in an answer | the coding is dropped: compressed bytes as plain ones => forwarded whole, with Transfer-Encoding: gzip, chunked | integration/orchestrator/edge/answers.test.ts | with another transfer coding keeps its name
sibling: the same to a client of HTTP/1.0 | not tried => 502 that names the coding gzip, which HTTP/1.0 cannot carry | integration/orchestrator/edge/answers.test.ts | a client of HTTP/1.0 learns why it gets none
sibling: the same to a client of HTTP/2 | compressed bytes as plain ones => 502 that names the coding gzip, which HTTP/2 cannot carry | integration/shared/front.test.ts | an answer whose body has a transfer coding is refused with its name
sibling: Transfer-Encoding: gzip until the end of the connection | not tried => forwarded whole as gzip, chunked | integration/orchestrator/edge/answers.test.ts | with another transfer coding keeps its name
sibling: chunked before another coding | not tried => 502: chunked is not the last coding | integration/orchestrator/edge/answers.test.ts | chunked before another coding
sibling: identity as the coding | not tried => the body arrives until the end of the connection | integration/orchestrator/edge/answers.test.ts | identity as its coding
sibling: chunked said twice | not tried => read and forwarded as chunked once | integration/orchestrator/edge/answers.test.ts | chunked said twice
`,
  "methods that the parser does not carry": `
curl -X LIST (Vault) | 400 "Malformed request" => 501 "The method LIST cannot be forwarded", also behind an answered request of the same connection | integration/orchestrator/edge/answers.test.ts | LIST
sibling: DESCRIBE (RTSP) | 400 "Malformed request" => 501 that names DESCRIBE | integration/orchestrator/edge/answers.test.ts | DESCRIBE
sibling: BREW, GETX, and list in small letters | 400 "Malformed request" => 501 that names the method as it was written | integration/orchestrator/edge/answers.test.ts | which the parser does not know, names the method
sibling: CONNECT a:1 | not tried => 501 that names CONNECT | integration/orchestrator/edge/answers.test.ts | to CONNECT or to another version of HTTP says so
sibling: PRI * HTTP/2.0, and GET with HTTP/1.2 | not tried => 505: speaks HTTP/1.1 only | integration/orchestrator/edge/answers.test.ts | to CONNECT or to another version of HTTP says so
sibling: printf 'GET / HTTP/1.1', line feeds alone, piped to nc | 505 "This address speaks HTTP/1.1 only" => 400: a line of it does not end with CR LF | integration/orchestrator/edge/malformed.test.ts | line feeds alone
sibling: curl http://…/ü, which sends the bytes as they are | 400 "Malformed request" => 400 that says that such a character must be percent-encoded | integration/orchestrator/edge/malformed.test.ts | letters beyond ASCII in its target
sibling: a blank in the target, and a target without a slash | 400 "Malformed request" => 400 that says what is wrong with the first line | integration/orchestrator/edge/malformed.test.ts | a blank in its target
sibling: a folded header, and a blank before a colon | 400 "Malformed request" => 400 that says what is wrong with a header | integration/orchestrator/edge/malformed.test.ts | a folded header
sibling: Content-Length twice with one value, and beside chunks | 400 "Malformed request" => 400 that names Content-Length | integration/orchestrator/edge/malformed.test.ts | the same length twice
sibling: an upload in chunks that breaks off with a chunk without a size | no answer, and the exchange stayed for ten minutes => 400 at once that names the chunk, and the server sees the end of the upload | integration/orchestrator/edge/malformed.test.ts | is refused at once, and the server sees its end
sibling: the same behind the beginning of the answer | no end => the answer is cut at once | integration/orchestrator/edge/malformed.test.ts | ends with the answer cut
`,
  "426 and its Upgrade": `
426 with Upgrade: websocket | the header is dropped => it arrives, named by Connection: Upgrade | integration/orchestrator/edge/answers.test.ts | 426 keeps the protocols that the server asks for
sibling: 426 as the answer that declines another upgrade | the header is dropped => it arrives with Connection: close, Upgrade, and the connection ends | integration/orchestrator/edge/answers.test.ts | 426 keeps the protocols that the server asks for
sibling: 200 with Upgrade: h2c, which is an offer | the header is dropped => dropped still: the proxy has not checked that protocol | integration/orchestrator/edge/answers.test.ts | 426 keeps the protocols that the server asks for
sibling: a request with Upgrade: h2c | not tried => served as if it had not been asked for, and the connection goes on | integration/orchestrator/edge/upgrades.test.ts | is served as if it had not been asked for
`,
  "HTTP/2 and TLS at the edge": `
a browser with more than about 110 cookies, which HTTP/2 sends one by one, as in mod_h2 201 | the stream is reset with ENHANCE_YOUR_CALM => all arrive, in one header | integration/shared/front-forms.test.ts | five hundred cookies
sibling: a request by HTTP/2 with five hundred headers | the stream is reset with ENHANCE_YOUR_CALM => all arrive | integration/shared/front-forms.test.ts | five hundred headers
a server that says Content-Encoding twice, as in mod_h2 35 | 502 "the connection was closed without an answer" => both, in one line | integration/shared/front-forms.test.ts | Content-Encoding
sibling: Content-Language twice | 502 "the connection was closed without an answer" => both, in one line | integration/shared/front-forms.test.ts | Content-Language
sibling: trailers with two lines of User-Agent | the program ended => the answer is whole, and the connection goes on | integration/shared/front-forms.test.ts | end nothing but their answer
sibling: GET with Trailer by HTTP/2 | the program ended => served, without that header | integration/shared/front-forms.test.ts | a request that announces trailers
sibling: a request by HTTP/2 with two trailers | the last arrives => both arrive | integration/shared/front-forms.test.ts | a request that announces trailers
sibling: an answer with status 999, by HTTP/2 | 502 "the connection was closed without an answer" => 502 that names the status | integration/shared/front-forms.test.ts | a status above those of HTTP/2
curl http://host:443, as in node 23331 | an empty reply => 400 that says to write https:// | integration/shared/front-forms.test.ts | without TLS is answered with what to write
sibling: CONNECT to the port with TLS | an empty reply => 400 that says to write https:// | integration/shared/front-forms.test.ts | without TLS is answered with what to write
Rails, Django or Gradio behind https: redirects, forms and media with http:// (gradio 8148) | no X-Forwarded-Proto => X-Forwarded-Proto: https, by HTTP/1.1 and HTTP/2, whatever the client says | integration/orchestrator/edge/secured.test.ts | a server learns of its client's TLS
sibling: a trusted proxy that speaks TLS to the edge and http to its client | not tried => what it says stays | unit/orchestrator/edge/visitor.test.ts | is what a trusted proxy says
`,
  "upgrades that are only offered": `
Apache HttpClient 5.4 sends Upgrade: TLS/1.2 with each GET, as in wiremock 2948 | 404 of envd, no answer of Vite, and the connection ended => served as if it had not been asked for | integration/orchestrator/edge/upgrades.test.ts | to TLS, which Apache HttpClient offers
sibling: Upgrade: TLS/1.3, TLS/1.2 | passed on => served as if it had not been asked for | integration/orchestrator/edge/upgrades.test.ts | to one of several versions of TLS
sibling: Upgrade: h2c of the JDK's client | not tried => served as if it had not been asked for | integration/orchestrator/edge/upgrades.test.ts | to HTTP/2
`,
};
