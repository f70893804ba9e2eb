/** Graceful shutdown: refuses new connections, then waits for the requests under way. */

import type { FastifyInstance } from "fastify";
import { withDeadline } from "../../shared/program/deadline.ts";

export interface Draining {
  /** Resolves when every request has been answered, or after `limitMs`. */
  drain(limitMs: number): Promise<void>;
}

/** Must be called before the server listens. */
export function drains(server: FastifyInstance): Draining {
  let active = 0;
  let idle: () => void = () => undefined;
  server.addHook("onRequest", (_request, reply, done) => {
    active++;
    // `close` also fires when the client disconnects; `finish` would not.
    reply.raw.once("close", () => {
      active--;
      if (active === 0) idle();
    });
    done();
  });
  return {
    async drain(limitMs) {
      server.server.close();
      if (active === 0) return;
      const idleAgain = new Promise<void>((resolve) => {
        idle = resolve;
      });
      await withDeadline(idleAgain, limitMs, () => undefined);
    },
  };
}
