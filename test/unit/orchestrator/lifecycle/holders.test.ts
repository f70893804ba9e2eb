/** Which visitor of a paused sandbox may learn that it is paused. */

import { expect, test } from "vitest";
import type { VisitorTokens } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { isHolder, proofOf } from "../../../../orchestrator/lifecycle/pausing/holders.ts";
import { envdToken, fileSignature, trafficToken } from "../../../../shared/ids.ts";

const seed = "seed";
const id = "i1";
const KEY = `svc_${"a".repeat(40)}`;
const keys = new Map([
  [KEY, "p1"],
  [`e2b_${"b".repeat(40)}`, "p2"],
]);
const path = "/a b";
const signedBy = (token: string) => ({
  signature: fileSignature({ path, operation: "read", username: "", token }),
  path,
  operation: "read" as const,
  username: "",
  expiration: undefined,
});

test.each<[string, boolean, VisitorTokens]>([
  ["nothing", false, {}],
  ["empty tokens", false, { trafficAccessTokens: [""], envdAccessToken: "", apiKey: "" }],
  ["envd's token", true, { envdAccessToken: envdToken(seed, id) }],
  ["envd's token of another sandbox", false, { envdAccessToken: envdToken(seed, "i2") }],
  ["envd's token as a traffic token", false, { trafficAccessTokens: [envdToken(seed, id)] }],
  ["a traffic token", true, { trafficAccessTokens: ["wrong", trafficToken(seed, id)] }],
  ["a traffic token of another sandbox", false, { trafficAccessTokens: [trafficToken(seed, "i2")] }],
  ["a signed URL", true, { signed: signedBy(envdToken(seed, id)) }],
  ["a URL that another sandbox signed", false, { signed: signedBy(envdToken(seed, "i2")) }],
  ["the project's key", true, { apiKey: KEY }],
  ["another project's key", false, { apiKey: `e2b_${"b".repeat(40)}` }],
  ["an unknown key", false, { apiKey: `svc_${"c".repeat(40)}` }],
  ["a wrong token and the project's key", true, { envdAccessToken: "wrong", apiKey: KEY }],
])("a visitor with %s: %s", async (_what, expected, tokens) => {
  const proof = await proofOf(id, tokens, {
    seeds: { all: ["newer", seed] },
    projectOf: (key) => Promise.resolve(keys.get(key)),
  });
  expect(isHolder(proof, { projectId: "p1" })).toBe(expected);
});

test("a text that is no API key is never looked up", async () => {
  const asked: string[] = [];
  const projectOf = (key: string) => {
    asked.push(key);
    return Promise.resolve("p1");
  };
  for (const apiKey of ["", "svc_", "svc_xyz", `svc_${"A".repeat(40)}`, "x".repeat(100_000)]) {
    expect(await proofOf(id, { apiKey }, { seeds: { all: ["newer", seed] }, projectOf })).toEqual({
      token: false,
      projectId: undefined,
    });
  }
  expect(asked).toEqual([]);
});
