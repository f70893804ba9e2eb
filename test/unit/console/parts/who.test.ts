/** Who has done something, as the audit log's tables say it. */

import { expect, test } from "vitest";
import { namesOf, whoDid } from "../../../../console/src/parts/who.ts";

const NAMES = namesOf([{ id: "k1", name: "of an agent" }]);

test.each([
  ["a key that is there", { kind: "key", id: "k1", mask: "svc_ab…beef" }, "key ‘of an agent’ svc_ab…beef"],
  ["a key that was revoked", { kind: "key", id: "k2", mask: "svc_cd…feed" }, "key svc_cd…feed"],
  ["a person with the id of a key", { kind: "person", id: "k1", mask: "Maria" }, "person Maria"],
  ["a node", { kind: "node", id: "n1", mask: null }, "node n1"],
  ["nobody who is known", { kind: "open", id: null, mask: null }, "open"],
] as const)("%s is named so that people know it", (_what, actor, said) => {
  expect(whoDid(actor, NAMES)).toBe(said);
});
