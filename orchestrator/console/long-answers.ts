/** Answers that go on for as long as their reader wants: live events and terminals. They end with their session, and with the server. */

import type { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { isError } from "../../shared/http/errors.ts";
import type { Sessions } from "./sessions.ts";

/** Time between two looks at the session of an answer. */
const LOOK_MS = 2_000;

export interface LongAnswers {
  watch(request: FastifyRequest, answer: Readable): void;
  /** Ends every answer under way, so that a stop of the server does not wait for them. */
  stop(): void;
}

export function createLongAnswers(sessions: Pick<Sessions, "read">): LongAnswers {
  const open = new Set<Readable>();
  return {
    watch(request, answer) {
      const look = async () => {
        try {
          await sessions.read(request, false);
        } catch (error) {
          // A database that does not answer ends nothing.
          if (isError(error, "unauthorized")) answer.destroy();
        }
      };
      const looking = setInterval(() => void look(), LOOK_MS);
      open.add(answer);
      answer.once("close", () => {
        clearInterval(looking);
        open.delete(answer);
      });
    },
    stop() {
      for (const answer of open) answer.destroy();
    },
  };
}
