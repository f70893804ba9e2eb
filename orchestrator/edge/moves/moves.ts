/** Where a request goes whose sandbox was taken from its node while the request was under way. */

import type { Log } from "../../../shared/program/log.ts";
import { isSafe, type SentRequest } from "../../../shared/proxy/raw-headers.ts";
import type { Refusal } from "../answers/answers.ts";
import type { EdgeRoute, FindSandbox } from "../sandbox-lookup.ts";
import { Arrivals } from "./arrivals.ts";
import { afterInterruption } from "./interrupted.ts";

export type Next =
  /** The request is sent again, to this execution. */
  { readonly is: "again"; readonly route: EdgeRoute } | { readonly is: "refused"; readonly refusal: Refusal };

export class Moves {
  readonly #arrivals: Arrivals | undefined;
  readonly #log: Log;
  #isStopping = false;

  /** @param find absent: no request is sent again */
  constructor(find: FindSandbox | undefined, log: Log) {
    this.#arrivals = find === undefined ? undefined : new Arrivals(find);
    this.#log = log;
  }

  /**
   * A safe request waits for its sandbox and goes to where it runs next; any other one is not sent twice, and its answer says what
   * happened. A sandbox that stays paused is not resumed.
   */
  async after(
    request: SentRequest,
    { sandboxId, executionId }: Pick<EdgeRoute, "sandboxId" | "executionId">,
  ): Promise<Next> {
    const arrivals = this.#arrivals;
    if (arrivals === undefined) return refused({ is: "not_found", sandboxId });
    const repeats = isSafe(request);
    try {
      const found = await (repeats ? arrivals.arrived(sandboxId) : arrivals.find(sandboxId));
      if (repeats && found.is === "running") return { is: "again", route: found.route };
      return refused(afterInterruption(found, { sandboxId, executionId, repeats }));
    } catch (error) {
      this.#log.warn({ err: error, sandboxId }, "could not find out where the sandbox of an interrupted request is");
      return refused(repeats ? { is: "unasked", sandboxId } : { is: "interrupted", sandboxId, by: "move" });
    }
  }

  /** The answer to a request that has not reached its sandbox and cannot be sent again, because some of its body was read. */
  async withoutBody(sandboxId: string): Promise<Refusal> {
    const found = await this.#arrivals?.find(sandboxId).catch(() => undefined);
    return { is: found?.is === "not_found" ? "not_found" : "unasked", sandboxId };
  }

  /** The answer to a request that ends with its edge, whose sandbox runs on. Undefined: the edge does not stop. */
  stopped(request: SentRequest, sandboxId: string, underWay: boolean): Refusal | undefined {
    if (!this.#isStopping) return undefined;
    return underWay && !isSafe(request) ? { is: "interrupted", sandboxId, by: "stop" } : { is: "unasked", sandboxId };
  }

  stop(): void {
    this.#isStopping = true;
    this.#arrivals?.stop();
  }
}

function refused(refusal: Refusal): Next {
  return { is: "refused", refusal };
}
