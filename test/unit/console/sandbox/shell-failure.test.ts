/** What a terminal does when the connection to its shell fails. */

import { expect, test } from "vitest";
import { Failed } from "../../../../console/src/base/failed.ts";
import { afterFailure, waitingText } from "../../../../console/src/sandbox/shell-failure.ts";

const failed = (status: number, code?: string) =>
  new Failed(`answered ${status}`, { status, ...(code === undefined ? {} : { code }) });

test.each([
  ["the stream was cut", new Error("the connection was lost"), false, "again"],
  ["nothing answers", failed(0), false, "again"],
  ["the sandbox stands still, rewinds or goes to another node", failed(409, "conflict"), false, "again"],
  ["the node does not answer", failed(503), true, "again"],
  ["the shell is not there any more", failed(404, "not_found"), false, "start"],
  ["the image has no shell", failed(200, "not_found"), true, "end"],
  ["envd has ended the stream with an error", failed(200, "internal"), false, "again"],
  ["the sandbox has ended", failed(404, "sandbox_not_found"), false, "end"],
  ["nobody is logged in", failed(401), false, "end"],
  ["the key may only read", failed(403), false, "end"],
] as const)("a terminal does what can help: %s", (_name, error, isNew, next) => {
  expect(afterFailure(error, isNew)).toBe(next);
});

test("a terminal that waits says why", () => {
  expect(waitingText(failed(409))).toBe("answered 409, connecting again …");
  expect(waitingText(failed(200, "internal"))).toBe("answered 200, connecting again …");
  expect(waitingText(failed(0))).toBe("the connection was lost, connecting again …");
});
