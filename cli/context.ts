/** What a command works with: the platform it talks to, its standard streams, and the signal that ends it. */

import type { Readable } from "node:stream";
import { type Api, createApi } from "./api/client.ts";
import type { Environment } from "./api/contexts.ts";
import { readSettings, type Settings } from "./api/settings.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Options } from "./options.ts";
import { createOutput, type Output, type Terminals } from "./output/output.ts";

export interface Streams extends Terminals {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
}

export interface Context {
  readonly env: Environment;
  readonly streams: Streams;
  readonly out: Output;
  /** Aborted when the user ends the command. */
  readonly signal: AbortSignal;
  readonly settings: () => Promise<Settings>;
  /** With the API key; a command that names a project goes with the operators' token. */
  readonly api: () => Promise<Api>;
  /** With the operators' token. */
  readonly admin: () => Promise<Api>;
  readonly timeoutMs: number;
}

/** As long as the longest call of the platform may take: a pause of large memory, a start behind others. */
const DEFAULT_TIMEOUT_S = 120;

interface Given {
  readonly env: Environment;
  readonly streams: Streams;
  readonly signal: AbortSignal;
  readonly options: Options;
}

export function createContext({ env, streams, signal, options }: Given): Context {
  let read: Promise<Settings> | undefined;
  const settings = () => (read ??= readSettings(env, options.context));
  const timeoutMs = (options.requestTimeout ?? DEFAULT_TIMEOUT_S) * 1000;

  async function asOperator(headers: Readonly<Record<string, string>> = {}): Promise<Api> {
    const { apiUrl, adminToken, adminFile } = await settings();
    if (adminToken === undefined) {
      const there = `run it as root ${adminFile === undefined ? "on the platform's machine" : "(sudo)"}, where ${adminFile ?? "/etc/svc/admin-token"} has it`;
      throw new Failure("this needs the operators' token", {
        exitCode: EXIT.refused,
        wayOut: `set SVC_ADMIN_TOKEN, or ${there}; \`svc context add\` stores one with --token-file`,
      });
    }
    return createApi({ url: apiUrl, headers: { "x-admin-token": adminToken, ...headers }, timeoutMs, signal });
  }

  return {
    env,
    streams,
    signal,
    timeoutMs,
    out: createOutput(streams, env),
    settings,
    async api() {
      if (options.project !== undefined) return asOperator({ "x-team-id": options.project });
      const { apiUrl, apiKey } = await settings();
      if (apiKey === undefined) {
        throw new Failure("there is no API key for this platform", {
          exitCode: EXIT.refused,
          wayOut: "set SVC_API_KEY, or store one with `svc context add`",
        });
      }
      return createApi({ url: apiUrl, headers: { "x-api-key": apiKey }, timeoutMs, signal });
    },
    admin: () => asOperator(),
  };
}
