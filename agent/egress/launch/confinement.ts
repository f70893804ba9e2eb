/** Checks in the kernel's status of this process that `svc-egress` has confined it. Pure. */

const NOTHING = /^0+$/;

/** Rights that the process has and must not have, in words; none when it is confined. @param status `/proc/self/status` */
export function looseEnds(status: string): readonly string[] {
  const fields = new Map(
    status.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const ids = (name: string) => (fields.get(name) ?? "0").split(/\s+/);
  return [
    ...(ids("Uid").includes("0") ? ["it runs as root"] : []),
    ...(ids("Gid").includes("0") ? ["it runs in the group of root"] : []),
    ...((fields.get("Groups") ?? "0") === "" ? [] : ["it is in other groups"]),
    ...["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
      .filter((name) => !NOTHING.test(fields.get(name) ?? ""))
      .map((name) => `${name} is not empty`),
    ...(fields.get("NoNewPrivs") === "1" ? [] : ["it may gain privileges"]),
    ...(fields.get("Seccomp") === "2" ? [] : ["it has no seccomp filter"]),
  ];
}
