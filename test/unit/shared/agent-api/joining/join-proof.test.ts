import { expect, test } from "vitest";
import { joinProof, provesJoin } from "../../../../../shared/agent-api/joining/join-proof.ts";

const TOKEN = "n1:what-the-node-sends";
const claim = { tokenId: "abcdefghijkl", nodeId: "n1", keyDigest: "a".repeat(64) };

test("a proof of a join holds for each token that the node may have, and does not show the token", () => {
  const proof = joinProof(TOKEN, claim);
  expect(provesJoin(proof, ["n1:of-a-newer-key", TOKEN], claim)).toBe(true);
  expect(proof).not.toContain("what-the-node-sends");
});

test.each([
  ["with another join token", { tokenId: "abcdefghijkm" }],
  ["under another name", { nodeId: "n2" }],
  ["for another key", { keyDigest: "b".repeat(64) }],
])("a proof of a join does not hold %s", (_what, other) => {
  expect(provesJoin(joinProof(TOKEN, claim), [TOKEN], { ...claim, ...other })).toBe(false);
});

test("no proof, and that of another token, prove nothing", () => {
  expect(provesJoin(undefined, [TOKEN], claim)).toBe(false);
  expect(provesJoin("", [TOKEN], claim)).toBe(false);
  expect(provesJoin(joinProof("n2:another-node", claim), [TOKEN], claim)).toBe(false);
  expect(provesJoin(joinProof(TOKEN, claim), [], claim)).toBe(false);
});
