/** The agent's client for envd's internal routes. Every answer is hostile: bounded here, and checked by the callers. */

import { request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../shared/http/errors.ts";
import { within } from "../../shared/program/deadline.ts";
import { traceHeader } from "../../shared/program/tracing/trace.ts";

const PORT = 49983;
const MAX_ANSWER_BYTES = 2 * 1024 * 1024;
/** Pause between two checks whether envd answers: short, because every start waits for it. */
const POLL_MS = 4;
const CONNECT_LIMIT_MS = 1_000;
const WATCHES_LIMIT_MS = 2_000;

export interface EnvdInit {
  readonly accessToken: string;
  readonly envVars: Readonly<Record<string, string>>;
  readonly timestamp: string;
  readonly sandboxId: string;
  readonly templateId: string;
  readonly executionId: string;
  readonly defaultUser?: string;
  readonly defaultWorkdir?: string;
  /** PEM of the authorities to trust besides the image's own: `Egress.caFor`. Empty: none any more. Absent: unchanged. */
  readonly caBundle?: string;
  /** Variables of all commands, below those of `envVars`: `Egress.networkVariables`. Replaces those of the last init. */
  readonly networkVariables?: Readonly<Record<string, string>>;
  /** The token that opens the internal routes from now on. */
  readonly controlToken?: string;
}

/** Address of an envd and the token that opens its internal routes. */
interface EnvdAddress {
  readonly address: string;
  readonly controlToken: string;
}

export interface Envd {
  /** Waits until envd answers; the signal is the limit. */
  ready(at: EnvdAddress, signal: AbortSignal): Promise<void>;
  /** Lets envd run its own code once, so that the first command after a thaw finds it compiled. */
  warm(at: EnvdAddress, signal: AbortSignal): Promise<void>;
  init(at: EnvdAddress, body: EnvdInit, signal: AbortSignal): Promise<void>;
  /** For a running sandbox whose rules changed; as `EnvdInit.caBundle`. */
  trust(at: EnvdAddress, caBundle: string, signal: AbortSignal): Promise<void>;
  logs(at: EnvdAddress, after: number, signal: AbortSignal): Promise<unknown>;
  /** Suspends envd's own watches of files, which prevent a memory dump. Limited in time. */
  suspendWatches(at: EnvdAddress): Promise<void>;
  resumeWatches(at: EnvdAddress): Promise<void>;
}

export function httpEnvd(port = PORT): Envd {
  const call = (at: EnvdAddress, method: string, path: string, rest: { body?: string; signal: AbortSignal }) =>
    exchange({ ...at, port, method, path, ...rest });
  return {
    async ready(at, signal) {
      for (;;) {
        signal.throwIfAborted();
        try {
          await within(CONNECT_LIMIT_MS, (limit) =>
            call(at, "GET", "/health", { signal: AbortSignal.any([signal, limit]) }),
          );
          return;
        } catch {
          await delay(POLL_MS, undefined, { signal });
        }
      }
    },
    async warm(at, signal) {
      await call(at, "POST", "/warm", { signal });
    },
    async init(at, body, signal) {
      await call(at, "POST", "/init", { body: JSON.stringify(body), signal });
    },
    async trust(at, caBundle, signal) {
      await call(at, "PUT", "/ca-bundle", { body: JSON.stringify({ caBundle }), signal });
    },
    async suspendWatches(at) {
      await call(at, "POST", "/watches/suspend", { signal: AbortSignal.timeout(WATCHES_LIMIT_MS) });
    },
    async resumeWatches(at) {
      await call(at, "POST", "/watches/resume", { signal: AbortSignal.timeout(WATCHES_LIMIT_MS) });
    },
    async logs(at, after, signal) {
      const text = await call(at, "GET", `/logs?after=${after}&limit=1000`, { signal });
      try {
        return JSON.parse(text) as unknown;
      } catch (cause) {
        throw new AppError("unavailable", "the sandbox answered with logs that are not JSON", { cause });
      }
    },
  };
}

interface EnvdCall extends EnvdAddress {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly signal: AbortSignal;
}

// A new connection for each call: envd's timers expire while it is frozen, and would close an idle one at the thaw.
function exchange({ address, port, controlToken, method, path, body, signal }: EnvdCall): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(new AppError("unavailable", `the sandbox did not answer ${path}`, { cause }));
    const closed = () => fail(new Error("closed without an answer"));
    const call = request(
      {
        host: address,
        port,
        method,
        path,
        signal,
        agent: false,
        headers: {
          ...traceHeader(),
          "svc-node-token": controlToken,
          connection: "close",
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
        },
      },
      (response) => {
        call.off("close", closed);
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_ANSWER_BYTES) call.destroy(new Error("the answer is too long"));
          else chunks.push(chunk);
        });
        response.once("error", fail);
        response.once("close", closed);
        response.once("end", () => {
          const status = response.statusCode ?? 0;
          if (status >= 200 && status < 300) resolve(Buffer.concat(chunks).toString("utf8"));
          else fail(new Error(`status ${status}`));
        });
      },
    );
    call.once("error", fail);
    // An answer that switches protocols closes the connection without an error, and the signal then ends nothing any more.
    call.once("close", closed);
    call.end(body);
  });
}
