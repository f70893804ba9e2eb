/** Serves ports of a sandbox on this machine, for HTTP and WebSockets. */

import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import { createProxyServer } from "http-proxy";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { Failure, usage } from "../../failure.ts";
import { type Place, placeOf } from "../../inside/address.ts";

interface Pair {
  readonly local: number;
  readonly remote: number;
}

export const forward: Action = async (context, { first: sandboxID, rest }, options) => {
  const pairs = rest.map(pairOf);
  const host = addressOf(options.host ?? "localhost");
  if (isIP(host) === 0) throw usage(`'${host}' is no address of this machine`);
  const api = await context.api();
  const settings = await context.settings();
  // The answer has the tokens that open ports; one second more or less does not move the end of a sandbox, which is only extended.
  const { state } = await api.call("GET /sandboxes/{sandboxID}", { params: { sandboxID }, query: {} });
  const body = state === "paused" ? {} : { timeout: 1 };
  if (state === "paused") context.out.note(`resuming sandbox ${sandboxID}`);
  const { trafficAccessToken, domain } = await api.call("POST /v2/sandboxes/{sandboxID}/connect", {
    params: { sandboxID },
    body,
  });
  const token = typeof trafficAccessToken === "string" ? { "e2b-traffic-access-token": trafficAccessToken } : {};
  const servers: Server[] = [];
  try {
    for (const { local, remote } of pairs) {
      const place = placeOf(settings, { sandboxID, port: remote, domain: domain ?? undefined });
      const server = await serve(context, { ...place, headers: { ...place.headers, ...token } }, { host, port: local });
      servers.push(server);
      const { port } = server.address() as AddressInfo;
      await context.out.line(`http://${host.includes(":") ? `[${host}]` : host}:${port} -> ${sandboxID}:${remote}`);
    }
    await new Promise<void>((resolve) => {
      if (context.signal.aborted) resolve();
      context.signal.addEventListener("abort", () => resolve(), { once: true });
    });
  } finally {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  }
};

/** As of other tools: `localhost`, and an IPv6 address also as it stands in a URL. */
function addressOf(host: string): string {
  return host === "localhost" ? "127.0.0.1" : host.replace(/^\[(.*)\]$/, "$1");
}

/** What one can do about a port that cannot be taken. */
const WAYS_OUT: Readonly<Record<string, string>> = {
  EADDRINUSE: "name another local port, or 0 for a free one",
  EACCES: "ports below 1024 are for root: name a higher local port, such as 8080:80",
  EADDRNOTAVAIL: "this machine does not have that address: `ip address` shows those that it has",
  EAFNOSUPPORT: "this machine has no addresses of that kind: without --host it is 127.0.0.1",
};

/** `:80` takes a free port here, as with kubectl. */
function pairOf(text: string): Pair {
  const [, local = "", remote = local] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text.replace(/^:/, "0:")) ?? [];
  if (local === "" || Number(local) > 65_535 || Number(remote) > 65_535 || Number(remote) < 1) {
    throw usage(`'${text}' is no pair of ports`, "write LOCAL:REMOTE, such as 8080:80");
  }
  return { local: Number(local), remote: Number(remote) };
}

function serve(
  { out }: Context,
  { url, headers }: Place,
  at: { readonly host: string; readonly port: number },
): Promise<Server> {
  // With one address for all sandboxes the headers find the sandbox, and its server sees the name that the browser asked for.
  const proxy = createProxyServer({
    target: url,
    headers: { ...headers },
    changeOrigin: Object.keys(headers)[0] !== "e2b-sandbox-id",
  });
  proxy.on("error", (error, _request, answer) => {
    out.note(`error: ${url}: ${error.message}`);
    if (isResponse(answer)) {
      if (!answer.headersSent) answer.writeHead(502, { "content-type": "text/plain" });
      answer.end("svc forward: the platform did not answer\n");
    } else answer?.destroy();
  });
  const server = createServer((request, answer) => proxy.web(request, answer));
  server.on("upgrade", (request, socket, head) => proxy.ws(request, socket, head));
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const wayOut = WAYS_OUT[cause.code ?? ""];
      const problem = `cannot listen on ${at.host}:${at.port}: ${cause.code ?? cause.message}`;
      reject(new Failure(problem, { cause, ...(wayOut === undefined ? {} : { wayOut }) }));
    });
    server.listen(at.port, at.host, () => resolve(server));
  });
}

function isResponse(answer: unknown): answer is ServerResponse {
  return typeof answer === "object" && answer !== null && "writeHead" in answer;
}
