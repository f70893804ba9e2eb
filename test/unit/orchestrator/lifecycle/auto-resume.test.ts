/** The rules of auto-resume: which visitor may resume which sandbox, and for how long. */

import { describe, expect, test } from "vitest";
import { createSeeds } from "../../../../orchestrator/base/keys/seeds.ts";
import type { VisitorTokens } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { denial, mayAutoResume, secondsFor } from "../../../../orchestrator/lifecycle/pausing/auto-resume.ts";
import { envdToken, fileSignature, trafficToken } from "../../../../shared/ids.ts";
import type { SandboxState } from "../../../../shared/states/sandbox-state.ts";

const seed = "seed";
const id = "i1";
const withMemory = { id: "s", memory: true };
const withoutMemory = { id: "s", memory: false };
const none = { autoResume: true, snapshot: undefined, pendingSnapshot: undefined, resumption: undefined };

describe("the policy of auto-resume", () => {
  test.each<[boolean, SandboxState, object]>([
    [true, "paused", { snapshot: withMemory }],
    [false, "paused", { snapshot: withoutMemory }],
    [false, "paused", {}],
    [false, "paused", { snapshot: withMemory, autoResume: false }],
    [true, "pausing", { pendingSnapshot: withMemory }],
    [false, "pausing", { pendingSnapshot: withoutMemory, snapshot: withMemory }],
    [true, "starting", { snapshot: withMemory, resumption: { memory: true, seconds: 1 } }],
    // A caller resumes the sandbox without its memory: a request through the edge does not join such a resume.
    [false, "starting", { snapshot: withMemory, resumption: { memory: false, seconds: 1 } }],
    [false, "starting", {}],
    [false, "killing", { snapshot: withMemory }],
    [false, "gone", { snapshot: withMemory }],
  ])("answers %s for a sandbox that is %s with %j", (expected, state, over) => {
    expect(mayAutoResume({ ...none, state, ...over })).toBe(expected);
  });
});

describe("the tokens of a visitor", () => {
  const open = { id, network: undefined, seedId: undefined };
  const closed = { id, network: { allowPublicTraffic: false }, seedId: undefined };
  const path = "/a b";
  const signature = (token: string) => fileSignature({ path, operation: "read", username: "", token });
  const signed = (token: string) =>
    ({ signature: signature(token), path, operation: "read", username: "", expiration: undefined }) as const;

  test.each<[string, boolean, [typeof open | typeof closed, number], VisitorTokens]>([
    ["any port of an open one, with nothing", true, [open, 80], {}],
    ["a port of a closed one, with nothing", false, [closed, 80], {}],
    ["a port of a closed one, with a wrong token", false, [closed, 80], { trafficAccessTokens: ["x"] }],
    ["a port of a closed one, with envd's token", false, [closed, 80], { envdAccessToken: envdToken(seed, id) }],
    ["a port of a closed one, with its token", true, [closed, 80], { trafficAccessTokens: [trafficToken(seed, id)] }],
    [
      "a port of a closed one, with its token second",
      true,
      [closed, 80],
      { trafficAccessTokens: ["x", trafficToken(seed, id)] },
    ],
    ["envd's port, with nothing", false, [open, 49_983], {}],
    ["envd's port, with the traffic token", false, [closed, 49_983], { trafficAccessTokens: [trafficToken(seed, id)] }],
    ["envd's port, with another sandbox's token", false, [open, 49_983], { envdAccessToken: envdToken(seed, "i2") }],
    ["envd's port, with its token", true, [closed, 49_983], { envdAccessToken: envdToken(seed, id) }],
    ["envd's port, with a signed URL", true, [open, 49_983], { signed: signed(envdToken(seed, id)) }],
    ["envd's port, with a wrongly signed URL", false, [open, 49_983], { signed: signed("x") }],
    ["another port, with a signed URL", false, [closed, 80], { signed: signed(envdToken(seed, id)) }],
  ])("%s: the visitor is let in: %s", (_what, allowed, [record, port], tokens) => {
    expect(denial(record, { port, tokens, seeds: createSeeds(seed, []) }) === undefined).toBe(allowed);
  });
});

test.each([
  [15, 24, 300],
  [300, 24, 300],
  [420, 24, 420],
  [100_000, 24, 86_400],
  [100_000, 0.01, 300],
])("a sandbox that was created with %i s under a limit of %d hours is resumed for %i s", (created, hours, expected) => {
  expect(secondsFor(created, hours)).toBe(expected);
});
