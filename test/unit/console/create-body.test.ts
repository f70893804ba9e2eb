/** What the console's form of a new sandbox sends. */

import { expect, test } from "vitest";
import { bodyOf, EMPTY_FORM, formLike } from "../../../console/src/sandboxes/create-body.ts";

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
  [
    "a pasted file of settings",
    { labels: "# a=1", variables: '# keys\nexport KEY=a=b\n\n export  NAME="two words" \n#OLD=1\nexport=1' },
    { ...plain, metadata: { "# a": "1" }, envVars: { KEY: "a=b", NAME: '"two words"', export: "1" } },
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

const MODEL = { templateID: "t1", cpuCount: 2, memoryMB: 1024 };
const SAME = { cpuCount: 2, memoryMB: 1024 };
const ALWAYS = "variables, which the platform does not show";

test.each<[string, Parameters<typeof formLike>, object, readonly string[]]>([
  ["the size of its template", [{ ...MODEL, alias: "tools" }, SAME], { template: "tools" }, []],
  ["another size", [MODEL, { cpuCount: 1, memoryMB: 1024 }], { template: "t1", cpu: "2" }, []],
  ["the size of its snapshot", [MODEL, undefined], { template: "t1" }, []],
  [
    "rules, labels and volumes",
    [
      {
        ...MODEL,
        allowInternetAccess: false,
        network: { allowOut: ["a.test", "10.0.0.0/8"], denyOut: ["0.0.0.0/0"] },
        metadata: { a: "b=c", d: "" },
        volumeMounts: [
          { name: "data", path: "/data" },
          { name: "more", path: "/more" },
        ],
      },
      SAME,
    ],
    {
      template: "t1",
      internet: "no",
      allowOut: "a.test\n10.0.0.0/8",
      denyOut: "0.0.0.0/0",
      labels: "a=b=c\nd=",
      volume: "data",
      mountPath: "/data",
    },
    ["the volumes after the first"],
  ],
  [
    "a label of two lines",
    [{ ...MODEL, metadata: { a: "b\nc" } }, SAME],
    { template: "t1" },
    ["labels that are no lines"],
  ],
  [
    "what the form has no field for",
    [
      {
        ...MODEL,
        network: {
          rules: { "a.test": [{}] },
          egressProxy: { address: "p:1" },
          allowPublicTraffic: false,
          httpsPorts: [443],
        },
        lifecycle: { autoResume: false, onTimeout: "pause" },
      },
      SAME,
    ],
    { template: "t1" },
    [
      "the headers that rules set",
      "the proxy",
      "the token that its ports ask for",
      "how its ports are called",
      "the pause at its end",
    ],
  ],
])("a form like a sandbox with %s asks for the same, and names what it leaves", (_what, given, form, left) => {
  const found = formLike(...given);
  expect(found.form).toEqual({ ...EMPTY_FORM, ...form });
  expect(found.left.toSorted()).toEqual([ALWAYS, ...left].toSorted());
});
