import { expect, test } from "vitest";
import { statusLine } from "../../../../shared/program/service/status-line.ts";

test.each([
  [
    {
      sandboxes: 37,
      pools: [
        { ready: 5, wanted: 5 },
        { ready: 3, wanted: 3 },
      ],
      needs: { database: undefined },
    },
    "37 sandboxes, pool 8/8, database ok",
  ],
  [
    { sandboxes: 1, pools: [], needs: { orchestrator: "not reached" } },
    "1 sandbox, pool 0/0, orchestrator not reached",
  ],
  [{ sandboxes: 0, needs: {} }, "0 sandboxes"],
])("%j is '%s'", (facts, line) => expect(statusLine(facts)).toBe(line));
