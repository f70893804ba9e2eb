/** The files of the console's page: compressed ahead, and kept by browsers for ever where their name has the hash of their content. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addPage } from "../../../../orchestrator/console/page.ts";
import { createServer } from "../../../../shared/http/server.ts";
import { createLog } from "../../../../shared/program/log.ts";

const PAGE = "<!doctype html><title>Console</title>";
const SCRIPT = "globalThis.started = true;";

const server = createServer(createLog({ component: "test", level: "silent" }));
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-page-"));
  await mkdir(join(folder, "built/assets"), { recursive: true });
  await writeFile(join(folder, "secret.txt"), "outside of the page");
  for (const [name, text] of [
    ["index.html", PAGE],
    ["assets/app-Ab12Cd34.js", SCRIPT],
  ] as const) {
    const path = join(folder, "built", name);
    await writeFile(path, text);
    await writeFile(`${path}.br`, brotliCompressSync(text));
    await writeFile(`${path}.gz`, gzipSync(text));
  }
  await server.register(
    (scope, _options, done) => {
      addPage(scope, [join(folder, "none"), join(folder, "built")]);
      done();
    },
    { prefix: "/console" },
  );
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

const ask = (path: string, accepted?: string) =>
  server.inject({
    method: "GET",
    url: `/console${path}`,
    ...(accepted === undefined ? {} : { headers: { "accept-encoding": accepted } }),
  });

test.each([
  ["brotli", "gzip, deflate, br, zstd", "br", brotliDecompressSync],
  ["gzip, as browsers ask without TLS", "gzip, deflate", "gzip", gunzipSync],
  ["gzip where brotli is ruled out", "br;q=0, gzip", "gzip", gunzipSync],
  ["nothing of the kind", "identity", undefined, (bytes: Buffer) => bytes],
] as const)(
  "a browser that takes %s gets the file so, as it was compressed when the page was built",
  async (...row) => {
    const [, accepted, encoding, read] = row;
    for (const [path, text] of [
      ["/assets/app-Ab12Cd34.js", SCRIPT],
      ["/", PAGE],
    ] as const) {
      const answer = await ask(path, accepted);
      expect([answer.statusCode, answer.headers["content-encoding"], answer.headers.vary]).toEqual([
        200,
        encoding,
        "Accept-Encoding",
      ]);
      expect(read(answer.rawPayload).toString()).toBe(text);
    }
  },
);

test("what has its hash in its name is kept for ever, and the page that names it is asked for again", async () => {
  const script = await ask("/assets/app-Ab12Cd34.js");
  expect([script.headers["cache-control"], script.headers["content-type"]]).toEqual([
    "public, max-age=31536000, immutable",
    "text/javascript; charset=utf-8",
  ]);
  for (const path of ["/", "/sandboxes/i1/terminal", "/platform"]) {
    const page = await ask(path);
    expect([page.headers["cache-control"], page.headers["content-type"], page.body], path).toEqual([
      "no-cache",
      "text/html; charset=utf-8",
      PAGE,
    ]);
  }
});

test("no path leads out of the page's folder, and none of the API gets the page", async () => {
  for (const path of ["/assets/../../secret.txt", "/assets/..%2f..%2fsecret.txt", "/assets/%2e%2e/%2e%2e/secret.txt"])
    expect((await ask(path)).body, path).not.toContain("outside of the page");
  expect((await ask("/assets/none.js")).statusCode).toBe(404);
  expect((await ask("/api/none")).statusCode).toBe(404);
});
