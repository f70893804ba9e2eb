/** Serves the API's documents: the OpenAPI description, the reference page, and the answer of the bare address. */

import type { FastifyInstance, FastifyReply } from "fastify";
import { describedApi } from "../../../shared/api/public.ts";
import { toOpenApi } from "../../../shared/http/openapi.ts";
import { type DocsPage, docsPage, rootPage } from "./page.ts";

const ROOT = {
  message:
    "This is the API of a sandbox platform. Its reference is at /docs, its OpenAPI description at /openapi.json.",
  docs: "/docs",
  openapi: "/openapi.json",
};

interface Documents {
  readonly text: string;
  readonly docs: DocsPage;
  readonly root: DocsPage;
}

let made: Documents | undefined;

/** Made when somebody asks: it takes a tenth of a second, which no start has to wait for. */
function documents(): Documents {
  if (made !== undefined) return made;
  const document = toOpenApi(describedApi);
  made = { text: JSON.stringify(document), docs: docsPage(document), root: rootPage(document) };
  return made;
}

export function addDocuments(server: FastifyInstance): void {
  server.get("/openapi.json", (_request, reply) =>
    reply.type("application/json; charset=utf-8").send(documents().text),
  );
  server.get("/docs", (_request, reply) => sendPage(reply, documents().docs));
  server.get("/", (request, reply) => {
    void reply.header("vary", "Accept");
    return request.headers.accept?.includes("text/html") === true
      ? sendPage(reply, documents().root)
      : reply.type("application/json; charset=utf-8").send(JSON.stringify(ROOT));
  });
}

function sendPage(reply: FastifyReply, { html, contentSecurityPolicy }: DocsPage): FastifyReply {
  return reply
    .headers({
      "content-security-policy": contentSecurityPolicy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    })
    .type("text/html; charset=utf-8")
    .send(html);
}
