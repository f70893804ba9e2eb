/** `Server-Timing` of creates and forks: what their callers have waited for, where the operator asks for it. */

import { expect, onTestFinished, test } from "vitest";
import { type Answer, startCluster } from "../../../support/cluster/cluster.ts";

function partsOf({ headers }: Answer): string[] | undefined {
  return headers
    .get("server-timing")
    ?.split(", ")
    .map((part) => /^([a-z.]+);dur=\d+\.\d$/.exec(part)?.[1] ?? `wrong: ${part}`)
    .sort();
}

test.each(["on", "off"] as const)(
  "with SVC_SERVER_TIMING=%s answers have the parts of the request, or nothing",
  async (serverTiming) => {
    const cluster = await startCluster({ config: { serverTiming } });
    onTestFinished(() => cluster.stop());
    const create = (more: object = {}) =>
      cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", ...more } });
    const one = await create();
    expect(one.status).toBe(201);
    const { sandboxID } = one.body as { sandboxID: string };
    const forks = await cluster.ask("POST", `/sandboxes/${sandboxID}/fork`, { body: { count: 2 } });
    const started = ["node", "place", "queue", "store", "total"];
    const expected = [
      ["node", "place", "queue", "read", "store", "total"],
      ["node", "place", "queue", "read", "store", "total"],
      ["checkpoint", ...started],
      undefined,
    ];
    expect([
      partsOf(one),
      partsOf(await create({ count: 2 })),
      partsOf(forks),
      partsOf(await create({ timeout: "x" })),
    ]).toEqual(serverTiming === "on" ? expected : [undefined, undefined, undefined, undefined]);
  },
);
