/**
 * Passes a long body of known length around Node's parser, which would copy it twice: more work than all the rest. The parser
 * then waits for the end of a body that it does not see, so the connection is not used for another request.
 */

import type { AnswerBody } from "../../../shared/proxy/sending/forward-plan.ts";
import { intakeOf } from "../carry/intake.ts";

/** Length from which a body bypasses Node's queues. */
const LENT_BYTES = 1024 * 1024;

export function carryLongBody({ request, answer, response, length, carry, over }: AnswerBody): void {
  const intake = intakeOf(answer.socket);
  const { statusCode } = answer;
  const hasBody = request.method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
  // The end of a request that is still being sent would be lost with the connection.
  if (intake === undefined || length < LENT_BYTES || !request.complete || !hasBody) {
    carry();
    return;
  }
  // At the next tick the bytes that came with the head are parsed, and no more are read.
  process.nextTick(() => {
    if (answer.destroyed || response.destroyed) return;
    if (answer.complete || answer.socket.readableLength > 0) {
      carry();
      return;
    }
    let left = length;
    for (let early = answer.read(); early !== null; early = answer.read()) {
      left -= (early as Buffer).length;
      response.write(early);
    }
    intake.lend(response, { bytes: left, over });
  });
}
