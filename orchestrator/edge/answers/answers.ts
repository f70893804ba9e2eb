/** Every answer that the edge makes itself: status, body for programs, page for people. Pure. */

import type { Reader } from "./navigation.ts";
import { DOCTYPE, PAGE_POLICY, type Page, renderPage } from "./pages.ts";

export type Refusal =
  | { readonly is: "not_found"; readonly sandboxId: string }
  | { readonly is: "paused"; readonly sandboxId: string }
  | { readonly is: "closed_port"; readonly sandboxId: string; readonly port: number }
  /** `reason` completes "the server: …". */
  | { readonly is: "bad_response"; readonly sandboxId: string; readonly port: number; readonly reason: string }
  | { readonly is: "node_unreachable"; readonly sandboxId: string }
  | { readonly is: "token_missing"; readonly sandboxId: string }
  | { readonly is: "token_invalid"; readonly sandboxId: string; readonly header: string }
  | { readonly is: "internal_route"; readonly sandboxId: string; readonly path: string }
  | { readonly is: "too_many_connections"; readonly sandboxId: string; readonly connectionLimit: number }
  | { readonly is: "resume_denied"; readonly sandboxId: string; readonly message: string }
  | { readonly is: "held"; readonly sandboxId: string }
  | { readonly is: "cut_off"; readonly sandboxId: string }
  | { readonly is: "transitioning"; readonly sandboxId: string }
  | { readonly is: "limited"; readonly sandboxId: string; readonly message: string }
  /**
   * The sandbox may have got the request before it was paused or moved, or before the edge or the node's agent was stopped, and the request
   * must not be sent twice.
   */
  | { readonly is: "interrupted"; readonly sandboxId: string; readonly by: Interruption }
  /** No orchestrator says at the moment where the sandbox runs. */
  | { readonly is: "unasked"; readonly sandboxId?: string }
  | { readonly is: "invalid_signature" }
  | { readonly is: "too_many_wrong_signatures"; readonly retryAfterSeconds: number }
  /** As for an unknown sandbox: clients ask with the token of a killed sandbox whether it runs. */
  | { readonly is: "unknown_token" }
  | { readonly is: "too_many_wrong_tokens"; readonly retryAfterSeconds: number }
  | { readonly is: "text"; readonly status: number; readonly message: string };

type Interruption = "pause" | "move" | "stop";

export interface Answer {
  readonly status: number;
  /** Name, value, name, value, … */
  readonly headers: readonly string[];
  readonly body: string;
}

const TOKEN_HEADER = "e2b-traffic-access-token";
const EXPOSED = "*";
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/** CORS headers of the edge's own answers; a sandbox's answers carry the sandbox's own. */
export const CORS: readonly string[] = ["Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers", EXPOSED];

/** `reader` is the kind of client that reads the answer; see `readerOf`. */
export function answerFor(refusal: Refusal, reader: Reader): Answer {
  if (refusal.is === "text") return textAnswer(refusal.status, refusal.message);
  if (refusal.is === "invalid_signature") return jsonAnswer(401, { code: 401, message: "invalid signature" });
  if (refusal.is === "unknown_token")
    return jsonAnswer(502, { message: "The sandbox was not found: the access token belongs to none", code: 502 });
  if (refusal.is === "too_many_wrong_signatures" || refusal.is === "too_many_wrong_tokens") {
    const message = `Too many wrong ${refusal.is === "too_many_wrong_tokens" ? "tokens" : "signatures"} came from this address`;
    return jsonAnswer(429, { code: 429, message }, ["Retry-After", String(refusal.retryAfterSeconds)]);
  }
  if (refusal.is === "unasked") return unaskedAnswer(refusal.sandboxId, reader);
  const { status, message, page, more } = describe(refusal);
  if (reader === "script") return jsonAnswer(status, { sandboxId: refusal.sandboxId, message, ...more, code: status });
  return htmlAnswer({ ...page, sandboxId: refusal.sandboxId, status }, reader);
}

export function textAnswer(status: number, message: string): Answer {
  return answer(status, "text/plain; charset=utf-8", message);
}

export function htmlAnswer(page: Page, reader: Exclude<Reader, "script"> = "browser"): Answer {
  const text = `${reader === "browser" ? DOCTYPE : ""}${renderPage(page)}`;
  return answer(page.status, "text/html; charset=utf-8", text, ["Content-Security-Policy", PAGE_POLICY]);
}

/**
 * The answer to a preflight that the sandbox cannot answer. Browsers must not cache it: the sandbox's own server may
 * have another policy once it runs.
 */
export function preflightAnswer(requestedHeaders: string | undefined): Answer {
  const allowed = requestedHeaders !== undefined && /^[\w!#$%&'*+.^`|~, -]{1,4096}$/.test(requestedHeaders);
  return {
    status: 204,
    headers: [
      ...CORS,
      "Access-Control-Allow-Methods",
      METHODS,
      "Access-Control-Allow-Headers",
      allowed ? requestedHeaders : "*",
      "Access-Control-Max-Age",
      "0",
      "Vary",
      "Access-Control-Request-Headers",
    ],
    body: "",
  };
}

export function jsonAnswer(status: number, body: object, more: readonly string[] = []): Answer {
  return answer(status, "application/json; charset=utf-8", JSON.stringify(body), more);
}

function answer(status: number, type: string, body: string, more: readonly string[] = []): Answer {
  const headers = [
    ...CORS,
    "Content-Type",
    type,
    "Content-Length",
    String(Buffer.byteLength(body)),
    "Cache-Control",
    "no-store",
    "X-Content-Type-Options",
    "nosniff",
    ...more,
  ];
  return { status, headers, body };
}

interface Described {
  readonly status: number;
  readonly message: string;
  readonly more?: Readonly<Record<string, unknown>>;
  readonly page: Pick<Page, "title" | "what" | "advice">;
}

/** Any status but 502: SDKs read that as the end of the sandbox. */
function unaskedAnswer(sandboxId: string | undefined, reader: Reader): Answer {
  const again = ["Retry-After", "1"];
  const message = "The platform cannot say at the moment where the sandbox runs: send the request again";
  if (reader === "script" || sandboxId === undefined)
    return jsonAnswer(503, { ...(sandboxId === undefined ? {} : { sandboxId }), message, code: 503 }, again);
  const page = {
    title: "Sandbox Not Found at the Moment",
    what: "The platform cannot say at the moment where this sandbox runs.",
    advice: "Try again in a few seconds.",
    sandboxId,
    status: 503,
  };
  const { headers, ...rest } = htmlAnswer(page, reader);
  return { ...rest, headers: [...headers, ...again] };
}

type WithSandbox = Extract<Refusal, { readonly sandboxId: string }>;

function describe(refusal: WithSandbox): Described {
  switch (refusal.is) {
    case "not_found":
      return {
        status: 502,
        message: "The sandbox was not found",
        page: {
          title: "Sandbox Not Found",
          what: `The sandbox ${refusal.sandboxId} was not found.`,
          advice: "It may have been stopped, have reached its end of life, or never have existed. Start a new one.",
        },
      };
    // The status of a sandbox that does not run: SDKs read it as such, and any other one as a failure.
    case "paused":
      return {
        status: 502,
        message: "The sandbox is paused: connect to resume it",
        page: {
          title: "Sandbox Is Paused",
          what: `The sandbox ${refusal.sandboxId} is paused, and requests do not resume it.`,
          advice: `Connect to it to resume it: POST /v2/sandboxes/${refusal.sandboxId}/connect of the platform API, or connect of an SDK.`,
        },
      };
    case "closed_port":
      return {
        status: 502,
        message: "The sandbox is running but port is not open",
        more: { port: refusal.port },
        page: {
          title: "Closed Port",
          what: `The sandbox is running, but there is no service running on port ${refusal.port}.`,
          advice: "Start a server on this port inside the sandbox, then load this page again.",
        },
      };
    case "bad_response":
      return {
        status: 502,
        message: `The sandbox is running but the server on this port closed the connection or did not answer in HTTP: ${refusal.reason}`,
        more: { port: refusal.port },
        page: {
          title: "No Answer",
          what: `The sandbox is running, but the server on port ${refusal.port} did not give a valid answer: ${refusal.reason}.`,
          advice: "Look at the server's own output inside the sandbox, then load this page again.",
        },
      };
    // It has not got the request, and runs on: 502 would tell SDKs that it has ended.
    case "node_unreachable":
      return {
        status: 503,
        message: "The sandbox cannot be reached at the moment",
        page: {
          title: "Sandbox Not Reachable",
          what: "The machine that runs this sandbox cannot be reached at the moment.",
          advice: "Try again in a few seconds.",
        },
      };
    case "token_missing":
      return forbidden(
        `Sandbox is secured with traffic access token. Token header '${TOKEN_HEADER}' is missing`,
        "This sandbox only answers requests that carry its traffic access token.",
      );
    case "token_invalid":
      return forbidden(
        `Sandbox is secured with traffic access token. Provided token in header '${refusal.header}' is invalid`,
        "The traffic access token of this request is not the one of this sandbox.",
      );
    case "internal_route":
      return {
        status: 404,
        message: "This route is reserved for the control plane",
        more: { path: refusal.path },
        page: {
          title: "Not Found",
          what: "This route is reserved for the control plane.",
          advice: "Use another path.",
        },
      };
    case "too_many_connections":
      return {
        status: 429,
        message: "Too many connections to the sandbox",
        more: { connectionLimit: refusal.connectionLimit },
        page: {
          title: "Too Many Connections",
          what: `The sandbox has reached its limit of ${refusal.connectionLimit} connections.`,
          advice: "Close some of them, or try again in a moment.",
        },
      };
    case "resume_denied":
      return forbidden(refusal.message, "The sandbox is paused, and this request may not resume it.");
    case "transitioning":
      return {
        status: 409,
        message: "The sandbox is still transitioning",
        page: {
          title: "Sandbox Is Changing State",
          what: "The sandbox is being paused or resumed.",
          advice: "Try again in a few seconds.",
        },
      };
    case "interrupted":
      return interrupted(refusal.by);
    case "held":
      return {
        status: 507,
        message:
          "The sandbox stands still: its node's disk is short and it grew most on it. It goes on when there is room again, or is killed after five minutes",
        page: {
          title: "Sandbox Stands Still",
          what: "The disk of the sandbox's machine is short, and this sandbox grew most on it.",
          advice: "It goes on when there is room again, or is killed after five minutes.",
        },
      };
    case "cut_off":
      return {
        status: 503,
        message:
          "The sandbox stands still: its node has lost touch with the platform. It goes on when the node is back in time; after that it counts as lost",
        page: {
          title: "Sandbox Stands Still",
          what: "The sandbox's machine has lost touch with the platform.",
          advice: "The sandbox goes on when its machine is back in time; after that it counts as lost.",
        },
      };
    case "limited":
      return {
        status: 429,
        message: refusal.message,
        page: { title: "Limit Reached", what: refusal.message, advice: "Stop another sandbox, then try again." },
      };
  }
}

function forbidden(message: string, what: string): Described {
  return {
    status: 403,
    message,
    page: { title: "Access Denied", what, advice: `Send the token in the header ${TOKEN_HEADER}.` },
  };
}

const INTERRUPTED: Readonly<Record<Interruption, string>> = {
  pause: "The sandbox was paused while the request was under way, and may have carried it out",
  move: "The sandbox was moved to another node while the request was under way, and may have carried it out",
  stop: "The platform restarts a program between you and the sandbox, which runs on and may have carried the request out",
};

/** Without `Retry-After`: the sandbox may have carried the request out, so only its sender can tell whether to repeat it. */
function interrupted(by: Interruption): Described {
  const paused = by === "pause";
  const what = INTERRUPTED[by];
  return {
    status: paused ? 502 : 503,
    message: `${what}: ${paused ? "connect to resume it" : "the request was not sent again"}`,
    page: {
      title: "Request Interrupted",
      what: `${what}.`,
      advice: paused
        ? "Connect to the sandbox to resume it, and look there before you send the request again."
        : "Look into the sandbox before you send the request again.",
    },
  };
}
