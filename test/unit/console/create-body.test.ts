/** What the console's form of a new sandbox sends. */

import { expect, test } from "vitest";
import { bodyOf, EMPTY_FORM } from "../../../console/src/sandboxes/create-body.ts";

const plain = { templateID: "base", timeout: 300 };

test.each([
  ["nothing", {}, plain],
  ["a size", { cpu: "2", memory: "1024" }, { ...plain, cpuCount: 2, memoryMB: 1024 }],
  ["no internet", { internet: "no" }, { ...plain, allow_internet_access: false }],
  [
    "hosts",
    { allowOut: " a.test \n\n10.0.0.0/8", denyOut: "0.0.0.0/0" },
    { ...plain, network: { allowOut: ["a.test", "10.0.0.0/8"], denyOut: ["0.0.0.0/0"] } },
  ],
  [
    "labels and variables",
    { labels: "a=b=c\nd", variables: "X=1" },
    { ...plain, metadata: { a: "b=c", d: "" }, envVars: { X: "1" } },
  ],
  ["a volume", { volume: "data" }, { ...plain, volumeMounts: [{ name: "data", path: "/mnt/volume" }] }],
  [
    "a secret as a bearer token",
    { secret: "openai", secretHost: " API.test " },
    {
      ...plain,
      network: {
        rules: { "api.test": [{ transform: { headers: { Authorization: "Bearer ${e2b.secrets.openai}" } } }] },
      },
    },
  ],
  [
    "a secret in a header of its own",
    { secret: "openai", secretHost: "api.test", secretHeader: "X-Key" },
    {
      ...plain,
      network: { rules: { "api.test": [{ transform: { headers: { "X-Key": "${e2b.secrets.openai}" } } }] } },
    },
  ],
  ["a secret without a host", { secret: "openai" }, plain],
])("a form with %s asks for it", (_what, typed, expected) => {
  expect(bodyOf({ ...EMPTY_FORM, ...typed })).toEqual(expected);
});
