/** Who has done something, as the audit log's tables say it. */

import { expect, test } from "vitest";
import { namesOf, whoDid } from "../../../../console/src/parts/who.ts";

const entry = (id: string | null, details: object, kind = "key") => ({ object: { kind, id }, details });
const NAMES = namesOf(
  [{ id: "k1", name: "of an agent" }],
  // The newest first.
  [
    entry("k2", {}),
    entry("k2", { name: "renamed" }),
    entry("k2", { name: "as it was made" }),
    entry("k1", { name: "as it was made" }),
    entry("k4", { name: "of a secret" }, "secret"),
    entry(null, { name: "of a refusal" }),
  ],
);

test.each([
  ["a key that is there", { kind: "key", id: "k1", mask: "svc_ab…beef" }, "key ‘of an agent’ svc_ab…beef"],
  ["a key that was revoked", { kind: "key", id: "k2", mask: "svc_cd…feed" }, "key ‘renamed’ svc_cd…feed"],
  ["a key of which nothing is known", { kind: "key", id: "k3", mask: "svc_ef…cafe" }, "key svc_ef…cafe"],
  ["a key with the id of a secret", { kind: "key", id: "k4", mask: "svc_ab…0000" }, "key svc_ab…0000"],
  ["a person with the id of a key", { kind: "person", id: "k1", mask: "Maria" }, "person Maria"],
  ["a node", { kind: "node", id: "n1", mask: null }, "node n1"],
  ["nobody who is known", { kind: "open", id: null, mask: null }, "open"],
] as const)("%s is named so that people know it", (_what, actor, said) => {
  expect(whoDid(actor, NAMES)).toBe(said);
});
