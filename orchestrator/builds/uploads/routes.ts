/** The two routes that stream archives instead of JSON: uploads by clients, downloads by nodes. */

import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError, isError } from "../../../shared/http/errors.ts";
import type { Around } from "../../../shared/http/serve.ts";
import { showedCredentials } from "../../../shared/http/server.ts";
import type { Auth } from "../../access/auth.ts";
import type { Archives } from "./archives.ts";
import { checkUploadUrl, type UploadPlace } from "./url.ts";

export interface FileRoutesDeps {
  readonly auth: Auth;
  readonly around: Around;
  readonly archives: Archives;
  /** Seeds that may have signed an upload URL. */
  readonly seeds: readonly string[];
  readonly now: () => number;
  readonly maxBytes: number;
  /** False: the template was deleted after the URL was signed. */
  readonly isTemplate: (id: string) => Promise<boolean>;
  /** Whether the node has a build of the template that copies from these files. */
  readonly isBuilding: (place: UploadPlace & { readonly nodeId: string }) => Promise<boolean>;
}

interface Params {
  readonly templateId: string;
  readonly hash: string;
}

/** The description of a node's download that `auth.node` needs. */
const DOWNLOAD = {
  method: "GET",
  path: "/internal/templates/{templateId}/files/{hash}",
  summary: "Files of a COPY step",
  tag: "Nodes",
  access: "node",
  status: 200,
} as const;

/** The description of an upload that `around` needs. */
const UPLOAD = {
  method: "PUT",
  path: "/uploads/{templateId}/{hash}",
  summary: "Upload the files of a COPY step",
  tag: "Templates",
  access: "none",
  status: 200,
} as const;

export function addFileRoutes(server: FastifyInstance, deps: FileRoutesDeps): void {
  addDownloads(server, { ...deps, node: deps.auth.node });
  addUploads(server, deps);
}

interface DownloadDeps extends Pick<FileRoutesDeps, "archives" | "isBuilding"> {
  readonly node: Auth["node"];
}

export function addDownloads(server: FastifyInstance, deps: DownloadDeps): void {
  server.get<{ Params: Params }>("/internal/templates/:templateId/files/:hash", async (request, reply) => {
    const nodeId = await deps.node("node", request, DOWNLOAD, reply);
    const { templateId, hash } = place(request.params);
    const builds = await deps.isBuilding({ nodeId, templateId, hash });
    const found = builds ? await deps.archives.read(templateId, hash) : undefined;
    if (found === undefined) throw new AppError("not_found", "no such files have been uploaded");
    return reply.type("application/octet-stream").header("content-length", found.bytes).send(found.stream);
  });
}

/** The uploads alone, whose URLs are permissions of their own. */
export function addUploads(server: FastifyInstance, deps: Omit<FileRoutesDeps, "auth">): void {
  // A separate fastify context, because only its routes take a body of any type as a stream.
  void server.register((uploads, _options, done) => {
    uploads.removeAllContentTypeParsers();
    uploads.addContentTypeParser("*", (_request, body, parsed) => parsed(null, body));
    uploads.put<{ Params: Params; Querystring: Record<string, unknown>; Body: Readable | undefined }>(
      "/uploads/:templateId/:hash",
      {
        onError(request, _reply, error, next) {
          deps.around.failed({ operation: "uploadFiles", route: UPLOAD, request }, error);
          next();
        },
      },
      async (request, reply) => {
        const input = { params: undefined, query: undefined, body: undefined };
        const call = { operation: "uploadFiles", route: UPLOAD, request, reply, input };
        await deps.around.run(call, () => upload(request, deps));
        return reply.header("content-length", 0).send();
      },
    );
    done();
  });
}

type Upload = FastifyRequest<{ Params: Params; Querystring: Record<string, unknown>; Body: Readable | undefined }>;

async function upload(request: Upload, deps: Omit<FileRoutesDeps, "auth">): Promise<void> {
  const to = place(request.params);
  checkUploadUrl(to, request.query, { seeds: deps.seeds, now: deps.now() });
  showedCredentials(request, "known");
  const length = lengthOf(request, deps.maxBytes);
  if (!(await deps.isTemplate(to.templateId))) throw new AppError("template_not_found", "template not found");
  await deps.archives.store({ ...to, length, content: whole(request.body ?? request.raw, length) });
}

/** A client that disconnects has sent fewer bytes than it announced. */
async function* whole(body: Readable, length: number): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) yield chunk as Buffer;
  } catch (cause) {
    if (isError(cause, "request_timeout")) throw cause;
    const message = `the upload ended before the ${length} bytes it announced`;
    throw new AppError("bad_request", message, { cause });
  }
}

function place({ templateId, hash }: Params): UploadPlace {
  if (/^[a-z0-9]{1,64}$/.test(templateId) && /^[0-9a-f]{64}$/.test(hash)) return { templateId, hash };
  throw new AppError("bad_request", "path must be a template id and a hash of 64 hexadecimal digits");
}

function lengthOf({ headers }: FastifyRequest, maxBytes: number): number {
  const text = headers["content-length"];
  if (text === undefined || !/^[0-9]{1,15}$/.test(text)) {
    throw new AppError("bad_request", "header Content-Length is required");
  }
  const length = Number(text);
  if (length > maxBytes) {
    throw new AppError("payload_too_large", `an upload may have at most ${maxBytes} bytes`);
  }
  return length;
}
