/** POST /init: the platform sets the sandbox's identity. Sent again after every start, resume and fork. */

import type { Journal } from "../runtime/journal.ts";
import { installCertificates } from "./ca-bundle.ts";
import { Hosts } from "./hosts.ts";
import { writeIdentity } from "./identity-files.ts";
import type { InitRequest } from "./init-request.ts";
import type { Session } from "./session.ts";

export class Initialiser {
  readonly #session: Session;
  readonly #journal: Journal;
  readonly #root: string;
  readonly #hosts: Hosts;
  #lastApplied = Number.NEGATIVE_INFINITY;
  #turn: Promise<void> = Promise.resolve();

  /** @param root where files are written, `/` outside of tests */
  constructor(session: Session, journal: Journal, root: string) {
    this.#session = session;
    this.#journal = journal;
    this.#root = root;
    this.#hosts = new Hosts(root);
  }

  /** Called before memory is stored: keeps what a restore takes away. */
  keep(): void {
    this.#hosts.keep();
  }

  /**
   * Requests are applied one after the other; one that is older than the last applied one changes nothing.
   * A file that cannot be written is logged and does not fail the start.
   */
  async apply(request: InitRequest): Promise<void> {
    const turn = this.#turn.then(() => this.#apply(request));
    this.#turn = turn;
    await turn;
  }

  /** Replaces the certificate of a running sandbox, or removes it (empty text), after all earlier requests. */
  async trust(caBundle: string): Promise<void> {
    const turn = this.#turn.then(() => this.#trust(caBundle));
    this.#turn = turn.catch(() => undefined);
    await turn;
  }

  async #trust(caBundle: string): Promise<void> {
    this.#session.trust(await installCertificates(this.#root, caBundle));
  }

  async #apply({ settings, timestamp, caBundle }: InitRequest): Promise<void> {
    if (timestamp !== undefined) {
      if (timestamp < this.#lastApplied) return;
      this.#lastApplied = timestamp;
    }
    const { executionId } = this.#session.settings;
    // The entries so far belong to the previous or the copied execution, from which the node has fetched them.
    if (executionId !== undefined && settings.executionId !== executionId) this.#journal.clear();
    // First, and at once: from here on only the new token is valid.
    this.#session.apply(settings);
    if (settings.executionId !== executionId) await this.#attempt("hosts", () => this.#hosts.restore());
    await this.#attempt("identity", () => writeIdentity(this.#root, settings));
    if (caBundle !== undefined) await this.#attempt("ca bundle", () => this.#trust(caBundle));
  }

  async #attempt(what: string, work: () => Promise<void> | void): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#journal.write("warn", "init", "cannot write", {
        what,
        error: error instanceof Error ? error.message : "unknown",
      });
    }
  }
}
