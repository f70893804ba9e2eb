// Lets programs outside of the sandbox drive its Chromium: Chromium serves its DevTools protocol on 127.0.0.1 only, answers no request
// whose Host is a name, and tells its own address in /json. Port 9222 of this program forwards all of it, and puts the address by
// which the client came in its place. Who may reach the port is the platform's matter (docs/using.md, "Desktops and browsers").
// Arguments, for tests: its own port, and Chromium's.
import { createServer, request } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { argv } from "node:process";

const OWN = Number(argv[2] ?? 9222);
const HOST = "127.0.0.1";
const CHROMIUM = Number(argv[3] ?? 9223);
const PLACE = `${HOST}:${CHROMIUM}`;
const REFUSED =
  "From inside the sandbox the DevTools protocol is at localhost or at an address, and not at another name\n";

/** Where all comes from that a program inside sends to an address of the loopback network, such as 127.0.0.2, if it chooses no other. */
const LOOPBACK = /^(::ffff:)?127\.0\.0\.1$/;

/**
 * Chromium's own check of the Host, for what comes from inside: a page there, whose name somebody lets lead to this sandbox, could
 * otherwise drive the browser that shows it. What comes from outside has passed the platform, and has the Host by which it came.
 */
function isRefused({ socket, headers }) {
  if (socket.remoteAddress !== socket.localAddress && !LOOPBACK.test(socket.remoteAddress)) return false;
  const name = (headers.host ?? "").toLowerCase().replace(/:\d+$/, "");
  const isOwn = name === "" || name === hostname().toLowerCase() || /^(.*\.)?localhost$/.test(name);
  return !isOwn && isIP(name.replace(/^\[(.*)\]$/, "$1")) === 0;
}

/** The request to Chromium: the same, with the only Host that it answers. */
const forwarded = ({ method, url, headers }) => ({
  host: HOST,
  port: CHROMIUM,
  method,
  path: url,
  headers: { ...headers, host: PLACE },
});

/**
 * A Host without a port is one of the platform's domain, which is served with TLS.
 * @param from the request, by whose Host the client came
 */
function placed(text, { headers }) {
  const encrypted = headers["x-forwarded-proto"] === "https" || !/:\d+$/.test(headers.host);
  const scheme = encrypted ? "wss" : "ws";
  return text
    .replaceAll(`ws://${PLACE}`, `${scheme}://${headers.host}`)
    .replaceAll(`ws=${PLACE}`, `${scheme}=${headers.host}`);
}

const server = createServer((from, to) => {
  if (isRefused(from)) {
    to.writeHead(403, { "content-type": "text/plain" }).end(REFUSED);
    return;
  }
  const asked = request(forwarded(from), (answer) => {
    if (!from.url.startsWith("/json")) {
      to.writeHead(answer.statusCode, answer.headers);
      answer.pipe(to);
      return;
    }
    const parts = [];
    answer.on("data", (part) => void parts.push(part));
    answer.on("end", () => {
      const text = placed(Buffer.concat(parts).toString("utf8"), from);
      const headers = { ...answer.headers, "content-length": Buffer.byteLength(text) };
      delete headers["transfer-encoding"];
      to.writeHead(answer.statusCode, headers).end(text);
    });
    answer.on("error", () => void to.destroy());
  });
  asked.on("error", () => {
    if (to.headersSent) to.destroy();
    else to.writeHead(503, { "content-type": "text/plain" }).end("Chromium does not answer: it is starting again\n");
  });
  to.on("close", () => void asked.destroy());
  from.pipe(asked);
});

server.on("upgrade", (from, socket, head) => {
  socket.on("error", () => void socket.destroy());
  if (isRefused(from)) {
    socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    return;
  }
  const asked = request(forwarded(from));
  asked.on("upgrade", (answer, upstream, first) => {
    const fields = answer.rawHeaders.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join("");
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`);
    socket.write(first);
    upstream.write(head);
    upstream.on("error", () => void socket.destroy());
    upstream.on("close", () => void socket.destroy());
    socket.on("close", () => void upstream.destroy());
    upstream.pipe(socket).pipe(upstream);
  });
  asked.on("response", (answer) => {
    socket.end(
      `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    );
    answer.resume();
  });
  asked.on("error", () => void socket.destroy());
  asked.end();
});

server.listen(OWN);
