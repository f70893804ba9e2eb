import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import type { Failure } from "../../../../../shared/proxy/sending/forward-plan.ts";
import { proxyFailure } from "../../../../../shared/proxy/sending/proxy-failure.ts";

const answered = (...rawHeaders: string[]) => proxyFailure({ rawHeaders } as IncomingMessage);

test.each<readonly [string, string | undefined, Failure | undefined]>([
  ["removed", undefined, { is: "removed", underWay: false }],
  ["removed", "under-way", { is: "removed", underWay: true }],
  ["removed", "a reason of a later version", { is: "removed", underWay: false }],
  ["stopping", undefined, { is: "stopping", underWay: false }],
  ["stopping", "under-way", { is: "stopping", underWay: true }],
  ["held", undefined, { is: "held", cutOff: false }],
  ["held", "lease", { is: "held", cutOff: true }],
  ["closed", undefined, { is: "closed" }],
  ["bad_response", "it sent nothing", { is: "bad_response", reason: "it sent nothing" }],
  ["unauthorized", undefined, { is: "unreachable", unsent: false }],
  ["a failure of a later version", undefined, undefined],
])("an answer of a node's proxy with the error '%s' and the reason '%s' is this failure", (error, reason, failure) => {
  const more = reason === undefined ? [] : ["Svc-Proxy-Reason", reason];
  expect(answered("Svc-Proxy-Error", error, ...more)).toEqual(failure);
});

test("an answer without the error is the server's, whatever reason it has", () => {
  expect(answered("svc-proxy-reason", "under-way")).toBeUndefined();
});
