import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { schemeTeller } from "../../../../orchestrator/edge/visitor.ts";

const PROXY = "192.0.2.7";
const SAID = ["X-Forwarded-Proto", "http"];

describe("the scheme of a client's connection", () => {
  const tells = schemeTeller((address) => address === PROXY);

  it.each([
    ["is told where TLS ends at the edge", { encrypted: true, from: "198.51.100.1", rawHeaders: [] }, true],
    ["is told in place of what a client says", { encrypted: true, from: "198.51.100.1", rawHeaders: SAID }, true],
    ["is told for a proxy that says nothing", { encrypted: true, from: PROXY, rawHeaders: [] }, true],
    ["is what a trusted proxy says", { encrypted: true, from: PROXY, rawHeaders: SAID }, false],
    [
      "is what a trusted proxy says, on IPv6 too",
      { encrypted: true, from: `::ffff:${PROXY}`, rawHeaders: SAID },
      false,
    ],
    ["is not known without TLS", { encrypted: false, from: "198.51.100.1", rawHeaders: SAID }, false],
  ])("%s", (_what, { encrypted, from, rawHeaders }, expected) => {
    const socket = { remoteAddress: from, ...(encrypted ? { encrypted } : {}) } as unknown as Socket;
    expect(tells({ socket, rawHeaders })).toBe(expected);
  });
});
