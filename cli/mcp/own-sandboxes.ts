/** The sandboxes of one MCP server: those with its name in their metadata, and no more of them at a time than its limit. */

import type { Context } from "../context.ts";
import { EXIT, Failure } from "../failure.ts";
import { enter, type Inside } from "../inside/sandbox.ts";

/** The metadata that tells them from the other sandboxes of the project. */
const LABEL = "mcp";
/** Of one sandbox: each holds its memory and its disk. */
const MOST_SNAPSHOTS = 10;

export interface OwnOptions {
  readonly name: string;
  readonly limit: number;
  /** Seconds. */
  readonly lifetime: number;
}

export interface Wanted {
  readonly template: string;
  readonly internet: boolean;
  readonly env: Readonly<Record<string, string>>;
}

interface Known {
  readonly sandboxID: string;
  readonly state: string;
  readonly template: string;
  readonly endAt: string;
}

export class OwnSandboxes {
  readonly #context: Context;
  readonly #options: OwnOptions;
  /** Snapshots that this process has taken, by sandbox: they go with it. */
  readonly #snapshots = new Map<string, string[]>();
  /** One start after another: two at once would both find room for the last one. */
  #starting: Promise<unknown> = Promise.resolve();

  constructor(context: Context, options: OwnOptions) {
    this.#context = context;
    this.#options = options;
  }

  async list(): Promise<readonly Known[]> {
    const api = await this.#context.api();
    const metadata = new URLSearchParams({ [LABEL]: this.#options.name }).toString();
    const found = await api.all("GET /v2/sandboxes", { query: { metadata } });
    return found.map(({ sandboxID, state, alias, templateID, endAt }) => ({
      sandboxID,
      state,
      template: alias ?? templateID,
      endAt,
    }));
  }

  create({ template, internet, env }: Wanted): Promise<string> {
    return this.#start(1, async () => {
      const api = await this.#context.api();
      const created = await api.call("POST /v2/sandboxes", {
        body: {
          templateID: template,
          timeout: this.#options.lifetime,
          metadata: { [LABEL]: this.#options.name },
          envVars: { ...env },
          ...(internet ? {} : { allow_internet_access: false }),
        },
      });
      if (Array.isArray(created)) throw new Failure("the platform answered with several sandboxes");
      return created.sandboxID;
    });
  }

  fork(
    sandboxID: string,
    count: number,
  ): Promise<{ readonly ids: readonly string[]; readonly errors: readonly string[] }> {
    return this.#start(count, async () => {
      await this.#check(sandboxID);
      const api = await this.#context.api();
      const results = await api.call("POST /sandboxes/{sandboxID}/fork", {
        params: { sandboxID },
        body: { count, timeout: this.#options.lifetime },
      });
      return {
        ids: results.flatMap(({ sandbox }) => (sandbox === undefined ? [] : [sandbox.sandboxID])),
        errors: results.flatMap(({ error }) => (error === undefined ? [] : [error.message])),
      };
    });
  }

  async snapshot(sandboxID: string): Promise<string> {
    await this.#check(sandboxID);
    const taken = this.#snapshots.get(sandboxID) ?? [];
    if (taken.length >= MOST_SNAPSHOTS) {
      throw new Failure(
        `${taken.length} snapshots of sandbox ${sandboxID} are there, which is as many as one may have`,
        {
          wayOut: "rewind it to one of them, or fork it",
        },
      );
    }
    const api = await this.#context.api();
    const { snapshotID } = await api.call("POST /sandboxes/{sandboxID}/snapshots", { params: { sandboxID }, body: {} });
    // Read again: two calls at once both add theirs.
    this.#snapshots.set(sandboxID, [...(this.#snapshots.get(sandboxID) ?? []), snapshotID]);
    return snapshotID;
  }

  async rewind(sandboxID: string, snapshotID: string): Promise<void> {
    await this.#check(sandboxID);
    const api = await this.#context.api();
    await api.call("POST /sandboxes/{sandboxID}/rewind", {
      params: { sandboxID },
      body: { snapshotID, timeout: this.#options.lifetime },
    });
  }

  /** Ends it, and deletes its snapshots. Resolves to why some of these stay. */
  async kill(sandboxID: string): Promise<readonly string[]> {
    await this.#check(sandboxID);
    const api = await this.#context.api();
    await api.call("DELETE /sandboxes/{sandboxID}", { params: { sandboxID } });
    const taken = this.#snapshots.get(sandboxID) ?? [];
    this.#snapshots.delete(sandboxID);
    const stay: string[] = [];
    for (const templateID of taken) {
      try {
        await api.call("DELETE /templates/{templateID}", { params: { templateID } });
      } catch (error) {
        stay.push(`snapshot ${templateID} stays: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return stay;
  }

  async enter(sandboxID: string): Promise<Inside> {
    await this.#check(sandboxID);
    return enter(this.#context, sandboxID);
  }

  #start<T>(count: number, start: () => Promise<T>): Promise<T> {
    const started = this.#starting.then(async () => {
      const { limit } = this.#options;
      const there = (await this.list()).length;
      if (there + count > limit) {
        throw new Failure(`${there} sandboxes are there, and this server may have ${limit} at a time`, {
          wayOut: "kill one that is not needed any more",
        });
      }
      return start();
    });
    this.#starting = started.catch(() => undefined);
    return started;
  }

  /** @throws {Failure} the sandbox is none of this server's */
  async #check(sandboxID: string): Promise<void> {
    const api = await this.#context.api();
    const { metadata } = await api.call("GET /sandboxes/{sandboxID}", { params: { sandboxID }, query: {} });
    if (metadata?.[LABEL] === this.#options.name) return;
    throw new Failure(`sandbox ${sandboxID} is not of this server`, { exitCode: EXIT.notFound });
  }
}
