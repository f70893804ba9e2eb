import { describe, expect, test } from "vitest";
import { differences, type Restorer } from "../../../../agent/host/origins.ts";

const made = {
  kernel: "6.12.9-amd64",
  architecture: "x86_64",
  cpuFlags: "fpu sse2 avx avx2",
  criu: "4.2.1",
  runc: "1.1.5",
  envd: "0.6.13",
};
const same: Restorer = {
  kernel: "6.12.9-amd64",
  architecture: "x86_64",
  cpuFlags: "fpu sse2 avx avx2",
  criu: "4.2.1",
  envds: ["0.6.12", "0.6.13"],
};

describe("a memory image", () => {
  test.each<{ named: string; here: Restorer }>([
    { named: "the machine that it is of", here: same },
    { named: "a processor with more", here: { ...same, cpuFlags: "fpu sse2 avx avx2 avx512f" } },
    { named: "a newer kernel", here: { ...same, kernel: "6.13.0" } },
    { named: "a kernel of a newer line", here: { ...same, kernel: "7.0.0" } },
    { named: "another build of its kernel", here: { ...same, kernel: "6.12.1-cloud" } },
    { named: "a newer CRIU", here: { ...same, criu: "4.10" } },
    { named: "a CRIU without a version", here: { ...same, criu: "unknown" } },
    {
      named: "a machine of which only the processor is known",
      here: { architecture: "x86_64", cpuFlags: made.cpuFlags },
    },
  ])("fits $named", ({ here }) => {
    expect(differences(made, here)).toEqual([]);
  });

  test.each<{ named: string; here: Restorer; says: string }>([
    {
      named: "another architecture",
      here: { ...same, architecture: "arm64" },
      says: "its memory is of a machine with x86_64, this one has arm64",
    },
    {
      named: "a processor with less",
      here: { ...same, cpuFlags: "fpu sse2 avx" },
      says: "this machine's processor lacks avx2, which its memory counts on",
    },
    {
      named: "an older kernel",
      here: { ...same, kernel: "6.9.12" },
      says: "its memory is of kernel 6.12.9-amd64, and this machine's is older (6.9.12)",
    },
    {
      named: "an older CRIU",
      here: { ...same, criu: "4.1.1" },
      says: "its memory is of CRIU 4.2.1, and this machine's is older (4.1.1)",
    },
    {
      named: "a machine without its envd",
      here: { ...same, envds: ["0.6.14"] },
      says: "its memory needs envd 0.6.13, which this machine does not have (0.6.14)",
    },
    {
      named: "a machine without any envd",
      here: { ...same, envds: [] },
      says: "its memory needs envd 0.6.13, which this machine does not have (none)",
    },
  ])("does not fit $named, and says so", ({ here, says }) => {
    expect(differences(made, here)).toEqual([says]);
  });

  test("names everything that stands in the way, and the first five of many features", () => {
    const many = { ...made, cpuFlags: "a b c d e f g sse2" };
    expect(differences(many, { ...same, cpuFlags: "sse2", kernel: "5.10", criu: "3.17" })).toEqual([
      "this machine's processor lacks a, b, c, d, e and 2 more, which its memory counts on",
      "its memory is of kernel 6.12.9-amd64, and this machine's is older (5.10)",
      "its memory is of CRIU 4.2.1, and this machine's is older (3.17)",
    ]);
  });
});
