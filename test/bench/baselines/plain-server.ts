/** The baseline of transfers: a bare node:http server, in a process of its own, that keeps the bytes in files. */

import { fork } from "node:child_process";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

export interface PlainServer {
  readonly url: string;
  stop(): void;
}

/** The flag that makes main.ts this server. */
export const SERVE = "--serve-plain";

export function startPlainServer(size: number): Promise<PlainServer> {
  const main = new URL("../main.ts", import.meta.url).pathname;
  const child = fork(main, [SERVE, String(size)]);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the plain server ended with ${code}`)));
    child.once("message", (url: string) => resolve({ url, stop: () => child.disconnect() }));
  });
}

/** Serves in the child process; as in envd, uploads go to a file and downloads come from one. */
export async function servePlain(size: number): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "bench-"));
  const stored = join(directory, "stored");
  await writeFile(stored, Buffer.alloc(size, "x"));
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.setHeader("content-length", size);
      pipeline(createReadStream(stored, { highWaterMark: 1 << 18 }), response).catch(() => response.destroy());
      return;
    }
    pipeline(request, createWriteStream(join(directory, "received"), { highWaterMark: 1 << 18 })).then(
      () => response.end("ok"),
      () => response.destroy(),
    );
  });
  process.once("disconnect", () => {
    server.close();
    server.closeAllConnections();
    void rm(directory, { recursive: true, force: true });
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    process.send?.(`http://127.0.0.1:${port}/`);
  });
}
