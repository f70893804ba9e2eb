import { expect, test } from "vitest";
import { refusalFor } from "../../../../../orchestrator/edge/answers/failures.ts";

const sandboxId = "i1";
const port = 8080;

test.each([
  [
    { is: "held", cutOff: false },
    { is: "held", sandboxId },
  ],
  [
    { is: "held", cutOff: true },
    { is: "cut_off", sandboxId },
  ],
  [
    { is: "stopping", underWay: true },
    { is: "interrupted", sandboxId, by: "stop" },
  ],
  [
    { is: "stopping", underWay: false },
    { is: "node_unreachable", sandboxId },
  ],
  [{ is: "closed" }, { is: "closed_port", sandboxId, port }],
  [
    { is: "bad_response", reason: "it sent nothing" },
    { is: "bad_response", sandboxId, port, reason: "it sent nothing" },
  ],
  [
    { is: "unforwardable", message: "cannot be forwarded" },
    { is: "text", status: 501, message: "cannot be forwarded" },
  ],
] as const)("a request that fails with %o is refused with %o", (failure, refusal) => {
  expect(refusalFor(failure, { sandboxId, port })).toEqual(refusal);
});
