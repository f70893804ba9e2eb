/** The calls of the code interpreter's clients. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context } from "../contexts/context.ts";
import { type Contexts, languageName } from "../contexts/contexts.ts";
import { possible } from "../contexts/variables.ts";
import { malformed, readBody } from "./body.ts";
import { Refusal } from "./refusal.ts";
import { RunStream } from "./run-stream.ts";

type Handler = (call: Call) => Promise<void> | void;

interface Call {
  readonly contexts: Contexts;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Of the context in the path. */
  readonly id: string;
}

/** Method and path, without the id of a context. */
const ROUTES: Readonly<Record<string, Handler>> = {
  "GET /health": ({ response }) => sendJson(response, "OK"),
  "POST /execute": execute,
  "GET /contexts": ({ contexts, response }) => sendJson(response, contexts.list().map(described)),
  "POST /contexts": create,
  "POST /contexts/*/restart": async ({ contexts, response, id }) => {
    await find(contexts, id).restart().catch(failed("restart"));
    sendJson(response, null);
  },
  "DELETE /contexts/*": async ({ contexts, response, id }) => {
    await contexts.remove(find(contexts, id));
    sendJson(response, null);
  },
};

/** @throws {Refusal} */
export async function route(contexts: Contexts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = ""] = (request.url ?? "").split("?", 1);
  const id = /^\/contexts\/([^/]+)/.exec(path)?.[1] ?? "";
  const pattern = id === "" ? path : path.replace(id, "*");
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "");
  const name = `${method} ${pattern}`;
  const handler = Object.hasOwn(ROUTES, name) ? ROUTES[name] : undefined;
  if (handler === undefined) throw new Refusal(404, `no such path: ${path.slice(0, 200)}`);
  await handler({ contexts, request, response, id });
}

async function execute({ contexts, request, response }: Call): Promise<void> {
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

async function create({ contexts, request, response }: Call): Promise<void> {
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

function described({ id, language, cwd }: Context): object {
  return { id, language, cwd };
}

function sendJson(response: ServerResponse, value: unknown): void {
  const bytes = Buffer.from(JSON.stringify(value));
  response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length });
  response.end(bytes);
}
