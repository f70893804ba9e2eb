import { expect, test } from "vitest";
import { afterInterruption } from "../../../../../orchestrator/edge/moves/interrupted.ts";
import type { EdgeRoute, Whereabouts } from "../../../../../orchestrator/edge/sandbox-lookup.ts";
import { isSafe } from "../../../../../shared/proxy/raw-headers.ts";

test.each<readonly [string, readonly string[], boolean]>([
  ["GET", [], true],
  ["HEAD", [], true],
  ["OPTIONS", ["Content-Length", "0"], true],
  ["GET", ["Content-Length", "1"], false],
  ["GET", ["Transfer-Encoding", "chunked"], false],
  ["POST", [], false],
  // Idempotent, but not safe: another request may have come between the two.
  ["PUT", [], false],
  ["DELETE", [], false],
  ["get", [], false],
])("whether %s with the headers %o may reach its sandbox twice: %s", (method, headers, may) => {
  expect(isSafe({ method, rawHeaders: [...headers] })).toBe(may);
});

const at = (executionId: string): Whereabouts => ({ is: "running", route: { executionId } as EdgeRoute });

test.each<readonly [string, Whereabouts, object, object]>([
  ["was killed", { is: "not_found" }, { is: "not_found" }, { is: "not_found" }],
  ["ended by itself", at("e1"), { is: "not_found" }, { is: "not_found" }],
  ["stays paused", { is: "paused", moving: false }, { is: "paused" }, { is: "interrupted", by: "pause" }],
  ["is being moved", { is: "paused", moving: true }, { is: "transitioning" }, { is: "interrupted", by: "move" }],
  ["is being resumed", { is: "transitioning" }, { is: "transitioning" }, { is: "interrupted", by: "move" }],
])("an interrupted request is answered so when its sandbox %s", (_what, found, safe, other) => {
  const base = { sandboxId: "i1", executionId: "e1" };
  expect(afterInterruption(found, { ...base, repeats: true })).toEqual({ sandboxId: "i1", ...safe });
  expect(afterInterruption(found, { ...base, repeats: false })).toEqual({ sandboxId: "i1", ...other });
});

test("a request that changes something is told of the move when its sandbox runs elsewhere", () => {
  const interrupted = { sandboxId: "i1", executionId: "e1", repeats: false };
  expect(afterInterruption(at("e2"), interrupted)).toEqual({ is: "interrupted", sandboxId: "i1", by: "move" });
});
