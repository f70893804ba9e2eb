/** The calls of the code interpreter's clients. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context } from "../contexts/context.ts";
import { type Contexts, languageName } from "../contexts/contexts.ts";
import { possible } from "../contexts/variables.ts";
import { malformed, readBody } from "./body.ts";
import { Refusal } from "./refusal.ts";
import { RunStream } from "./run-stream.ts";

/** @throws {Refusal} */
export async function route(contexts: Contexts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = ""] = (request.url ?? "").split("?", 1);
  const parts = path.split("/").slice(1);
  const [first, id, action, ...more] = parts;
  const called = `${request.method === "HEAD" ? "GET" : (request.method ?? "")} ${first ?? ""}`;
  if (more.length > 0) throw notFound(path);
  if (called === "GET health" && id === undefined) return sendJson(response, "OK");
  if (called === "POST execute" && id === undefined) return execute(contexts, request, response);
  if (first !== "contexts") throw notFound(path);
  if (id === undefined || id === "") {
    if (called === "GET contexts") return sendJson(response, contexts.list().map(described));
    if (called === "POST contexts") return create(contexts, request, response);
  } else if (called === "POST contexts" && action === "restart") {
    await find(contexts, id).restart().catch(failed("restart"));
    return sendJson(response, null);
  } else if (called === "DELETE contexts" && action === undefined) {
    await contexts.remove(find(contexts, id));
    return sendJson(response, null);
  }
  throw notFound(path);
}

async function execute(contexts: Contexts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readBody(request);
  const code = body.text("code");
  if (code === undefined) throw malformed("code is missing");
  const id = body.text("context_id");
  const language = body.text("language");
  if (id !== undefined && language !== undefined)
    throw new Refusal(400, "Only one of context_id or language can be provided");
  const variables = possible(body.texts("env_vars"));
  const context = id === undefined ? await defaultOf(contexts, language) : find(contexts, id);
  if (context.isFull) throw new Refusal(503, `Context ${context.id} has too many runs waiting`);
  const token = request.headers["x-access-token"];
  const stream = new RunStream(response);
  const execution = { code, variables, accessToken: typeof token === "string" ? token : undefined, left: stream.left };
  await context.execute(execution, (event) => stream.event(event));
  stream.end();
}

async function create(contexts: Contexts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readBody(request);
  const context = await contexts.create(languageName(body.text("language")), body.text("cwd")).catch(failed("create"));
  sendJson(response, described(context));
}

async function defaultOf(contexts: Contexts, language: string | undefined): Promise<Context> {
  return contexts.default(languageName(language)).catch(failed("create"));
}

function find(contexts: Contexts, id: string): Context {
  const context = contexts.find(id);
  if (context === undefined) throw new Refusal(404, `Context ${id.slice(0, 100)} not found`);
  return context;
}

function failed(what: "create" | "restart"): (reason: unknown) => never {
  return (reason) => {
    throw new Refusal(500, `Failed to ${what} context: ${reason instanceof Error ? reason.message : "unknown reason"}`);
  };
}

function notFound(path: string): Refusal {
  return new Refusal(404, `no such path: ${path.slice(0, 200)}`);
}

function described({ id, language, cwd }: Context): object {
  return { id, language, cwd };
}

function sendJson(response: ServerResponse, value: unknown): void {
  const bytes = Buffer.from(JSON.stringify(value));
  response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length });
  response.end(bytes);
}
