/**
 * A server that answers without reading bodies, as many people write one with Python's own library: it takes the unread
 * bytes for the next request.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const script = String.raw`
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self):
        print(self.command, self.path, flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

class Server(ThreadingHTTPServer):
    # The server of the library looks up the name of its address first, which waits for resolvers where there are none.
    def server_bind(self):
        TCPServer.server_bind(self)

server = Server((sys.argv[1], 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
`;

const START_MS = 30_000;

export interface CarelessServer {
  readonly port: number;
  /** Method and path of every request that the server believes it received. */
  readonly served: readonly string[];
  stop(): Promise<void>;
}

export async function carelessServer(address: string): Promise<CarelessServer> {
  const child: ChildProcess = spawn("python3", ["-c", script, address], { stdio: ["ignore", "pipe", "inherit"] });
  if (child.stdout === null) throw new Error("the server has no output");
  const lines = createInterface(child.stdout);
  const [port] = (await once(lines, "line", { signal: AbortSignal.timeout(START_MS) })) as [string];
  const served: string[] = [];
  lines.on("line", (line) => served.push(line));
  return {
    port: Number(port),
    served,
    async stop() {
      if (child.exitCode !== null) return;
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}

/**
 * A second request that lacks only the end of its last header: the next visitor's request line would become part of that
 * header.
 */
const HIDDEN = "GET /hidden HTTP/1.1\r\nHost: x\r\nX-Rest: ";
export const METHODS = ["GET", "DELETE", "OPTIONS", "POST", "PUT"] as const;

/** Makes the head and body of a request that hides another request in its body. */
export function withHidden(method: string, path: string, headers: string): string {
  return `${method} ${path} HTTP/1.1\r\n${headers}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`;
}
