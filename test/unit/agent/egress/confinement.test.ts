import { expect, test } from "vitest";
import { looseEnds } from "../../../../agent/egress/launch/confinement.ts";

const CONFINED: Readonly<Record<string, string>> = {
  Uid: "1900000000\t1900000000\t1900000000\t1900000000",
  Gid: "1900000000\t1900000000\t1900000000\t1900000000",
  Groups: " ",
  CapInh: "0000000000000000",
  CapPrm: "0000000000000000",
  CapEff: "0000000000000000",
  CapBnd: "0000000000000000",
  CapAmb: "0000000000000000",
  NoNewPrivs: "1",
  Seccomp: "2",
};
const status = (more: Readonly<Record<string, string | undefined>> = {}) =>
  Object.entries({ Name: "svc-egress", ...CONFINED, ...more })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}:\t${value}`]))
    .join("\n");

test("a confined process has no gap in its confinement", () => {
  expect(looseEnds(status())).toEqual([]);
});

test.each([
  ["Uid", "1900000000\t1900000000\t0\t1900000000", "it runs as root"],
  ["Gid", "0\t0\t0\t0", "it runs in the group of root"],
  ["Groups", "27 999", "it is in other groups"],
  ["CapBnd", "0000000000002000", "CapBnd is not empty"],
  ["CapAmb", "0000000000000400", "CapAmb is not empty"],
  ["NoNewPrivs", "0", "it may gain privileges"],
  ["Seccomp", "0", "it has no seccomp filter"],
])("a status with %s of %j is a gap in the confinement", (name, value, problem) => {
  expect(looseEnds(status({ [name]: value }))).toEqual([problem]);
});

test.each(Object.keys(CONFINED))("a process whose status lacks %s counts as not confined", (name) => {
  expect(looseEnds(status({ [name]: undefined }))).toHaveLength(1);
});
