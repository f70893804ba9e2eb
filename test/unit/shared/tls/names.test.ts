import { describe, expect, it } from "vitest";
import { EDGE, nameIn, nodeName, nodeOfName, ORCHESTRATOR } from "../../../../shared/tls/names.ts";

describe("names of peers", () => {
  it.each([
    ["URI:svc://node/n1", "svc://node/n1"],
    ["URI:svc://orchestrator", ORCHESTRATOR],
    ["URI:svc://edge", EDGE],
    ["URI:svc://orchestrator/x", undefined],
    ["URI:svc://node/", undefined],
    ["URI:svc://node/n1, URI:svc://orchestrator", undefined],
    ["URI:svc://node/n1, DNS:n1", undefined],
    ["DNS:svc://orchestrator", undefined],
    ["DNS:n1", undefined],
    ['URI:"svc://node/n1\\u002c x"', undefined],
    ["URI:https://node/n1", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("reads %j as %j", (subjectAltName, name) => {
    expect(nameIn(subjectAltName)).toBe(name);
  });

  it.each(["n1", "a", "Node-1.example_2", "x".repeat(64)])("names node %j and reads it back", (nodeId) => {
    expect(nodeOfName(nodeName(nodeId))).toBe(nodeId);
  });

  it.each(["", "-n", "a/b", "a, URI:svc://orchestrator", "a b", "é", "x".repeat(65)])(
    "refuses to name %j",
    (nodeId) => {
      expect(() => nodeName(nodeId)).toThrow("is no id of a node");
    },
  );

  it("finds no node in the name of another program", () => {
    expect([nodeOfName(ORCHESTRATOR), nodeOfName(EDGE), nodeOfName(undefined)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
