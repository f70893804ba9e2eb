/**
 * Servers in a sandbox that answer without end, and programs with which a sandbox floods the resolver and the egress
 * process.
 */

/** The ports of `python3 server.py`; each port gives another kind of answer that never ends. */
export const PORTS = { hints: 8001, body: 8002, headers: 8003, trailers: 8004 } as const;

export const SERVER = `import socket, threading
OK = b"HTTP/1.1 200 OK\\r\\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\\r\\n\\r\\n1\\r\\na\\r\\n0\\r\\n"
KINDS = {
  ${PORTS.hints}: (b"", b"HTTP/1.1 103 Early Hints\\r\\nLink: </" + b"a" * 1000 + b">\\r\\n\\r\\n"),
  ${PORTS.body}: (OK + b"Content-Length: 99999999999\\r\\n\\r\\n", b"a" * 1000),
  ${PORTS.headers}: (OK, b"X-A: " + b"a" * 100 + b"\\r\\n"),
  ${PORTS.trailers}: (CHUNKED, b"X-A: " + b"a" * 100 + b"\\r\\n"),
}
def answer(client, begin, again):
  try:
    client.recv(65536)
    client.sendall(begin)
    block = again * 60
    while True: client.sendall(block)
  except OSError: pass
  finally: client.close()
def serve(port, begin, again):
  server = socket.socket()
  server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
  server.bind(("0.0.0.0", port)); server.listen(512)
  while True:
    client, _ = server.accept()
    threading.Thread(target=answer, args=(client, begin, again), daemon=True).start()
for port, (begin, again) in KINDS.items():
  threading.Thread(target=serve, args=(port, begin, again)).start()
`;

/** Sends DNS questions by datagram as fast as it can, and opens connections on which a question comes byte by byte. */
export const dnsFlood = (seconds: number) => `import socket, struct, time, re
server = re.search(r"nameserver (\\S+)", open("/etc/resolv.conf").read()).group(1)
def question(n):
  labels = ("n%d" % n, "flood", "test")
  name = b"".join(struct.pack("B", len(l)) + l.encode() for l in labels) + b"\\0"
  return struct.pack(">HHHHHH", n % 65536, 256, 1, 0, 0, 0) + name + b"\\0\\1\\0\\1"
datagrams = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
trickles = []
end, n = time.time() + ${seconds}, 0
while time.time() < end:
  n += 1
  try: datagrams[n % 64].sendto(question(n), (server, 53))
  except OSError: pass
  if n % 100 == 0:
    s = socket.socket(); s.setblocking(False)
    try: s.connect((server, 53))
    except OSError: pass
    trickles.append(s)
    for s in trickles[-100:]:
      try: s.send(b"\\x0f")
      except OSError: pass
    if len(trickles) > 200: trickles.pop(0).close()
  time.sleep(0.0002)
`;

/** Opens connections that begin a TLS or SOCKS handshake, or a request, and then send nothing more. */
export const halfHandshakes = (seconds: number) => `import socket, time
BEGINNINGS = [b"\\x16\\x03\\x01\\x02\\x00\\x01\\x00", b"\\x05\\x02", b"GET / HTTP/1.1\\r\\nX: ", b""]
held = []
for n in range(200):
  s = socket.socket(); s.settimeout(2)
  try:
    s.connect(("198.51.100.7", 443 if n % 2 else 80))
    s.sendall(BEGINNINGS[n % 4])
    held.append(s)
  except OSError: s.close()
print(len(held), flush=True)
time.sleep(${seconds})
`;

/** Opens connections to a denied address; each costs the egress process one decision. */
export const decisionFlood = (seconds: number) => `import socket, time
end = time.time() + ${seconds}
while time.time() < end:
  s = socket.socket(); s.settimeout(0.05)
  try: s.connect(("198.51.100.%d" % (int(time.time() * 1000) % 250 + 1), 443)); s.sendall(b"\\x16\\x03\\x01\\x00\\x00")
  except OSError: pass
  s.close()
`;
