/** The console's page: the files that `npm run build -- console` has made, in memory, each compressed ahead. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../shared/http/errors.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Beside the bundled program, or where a checkout builds it. */
const FOLDERS = [join(import.meta.dirname, "console"), join(import.meta.dirname, "../../dist/console")];
const INDEX = "index.html";

type Encoding = "br" | "gzip" | undefined;
type Files = ReadonlyMap<string, Buffer>;

/**
 * Every path below `/console` that is no file is a screen of the page.
 * @param folders the first one with a built page is read
 */
export function addPage(server: FastifyInstance, folders: readonly string[] = FOLDERS): void {
  const files = readFiles(folders);
  const send = (request: FastifyRequest, reply: FastifyReply, name: string) => {
    const encoding = encodingFor(request.headers["accept-encoding"]);
    const body = files.get(`${name}${encoding === undefined ? "" : `.${encoding === "br" ? "br" : "gz"}`}`);
    if (body === undefined) {
      // During an upgrade another orchestrator has the file, and caches in front must not keep that this one has not.
      void reply.header("cache-control", "no-store");
      throw name === INDEX
        ? new AppError("unavailable", "the console's page is not built: run `npm run build -- console`")
        : new AppError("not_found", `the console has no file '${name}'`);
    }
    void reply.headers({
      vary: "Accept-Encoding",
      // The name of every other file has the hash of its content.
      "cache-control": name === INDEX ? "no-cache" : "public, max-age=31536000, immutable",
      ...(encoding === undefined ? {} : { "content-encoding": encoding }),
    });
    return reply.type(TYPES[extname(name)] ?? "application/octet-stream").send(body);
  };
  server.get("/", (request, reply) => send(request, reply, INDEX));
  server.get<{ Params: { "*": string } }>("/*", (request, reply) => {
    const name = request.params["*"];
    if (name.startsWith("api/")) throw new AppError("not_found", `no route GET /console/${name}`);
    return send(request, reply, name.startsWith("assets/") ? name : INDEX);
  });
}

function readFiles(folders: readonly string[]): Files {
  const folder = folders.find((each) => existsSync(join(each, INDEX)));
  if (folder === undefined) return new Map();
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return new Map(names.filter((name) => extname(name) !== "").map((name) => [name, readFileSync(join(folder, name))]));
}

function encodingFor(accepted: string | string[] | undefined): Encoding {
  const named = String(accepted ?? "")
    .split(",")
    .map((each) => each.trim());
  return (["br", "gzip"] as const).find((encoding) =>
    named.some((each) => each.split(";")[0] === encoding && !/;\s*q=0(\.0*)?$/.test(each)),
  );
}
