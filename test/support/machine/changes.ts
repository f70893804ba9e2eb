/** Changes of healthy evidence, of which faults are made. */

import type { Evidence, NodeSeen, ProgramSeen } from "../../../machine/evidence/evidence.ts";
import { OWN_NODE } from "./healthy.ts";

export type Change = (evidence: Evidence) => Partial<Evidence>;

export const some = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error("the healthy machine has everything");
  return value;
};
export const changed = <T extends object>(value: T | undefined, change: Partial<T>): T => ({
  ...some(value),
  ...change,
});
export const disk =
  (change: Partial<NonNullable<Evidence["disks"]>[number]>): Change =>
  ({ disks }) => ({
    disks: some(disks).map((one) => ({ ...one, ...change })),
  });
export const docker =
  (change: Partial<NonNullable<Evidence["docker"]>>): Change =>
  ({ docker }) => ({
    docker: changed(docker, change),
  });
export const objects =
  (change: Partial<NonNullable<Evidence["objects"]>>): Change =>
  ({ objects }) => ({
    objects: changed(objects, change),
  });
export const program =
  (name: ProgramSeen["program"], change: Partial<ProgramSeen>): Change =>
  ({ programs }) => ({
    programs: some(programs).map((one) => (one.program === name ? { ...one, ...change } : one)),
  });
export const node =
  (change: Partial<NodeSeen>): Change =>
  () => ({ nodes: [{ ...OWN_NODE, ...change }] });
/** A program counts something else. */
export const counted =
  (name: string, value: number, labels: Readonly<Record<string, string>> = {}, by?: ProgramSeen["program"]): Change =>
  ({ metrics }) => ({
    metrics: some(metrics).map((of) => ({
      ...of,
      samples: of.samples.map((sample) =>
        sample.name === name &&
        (by ?? of.program) === of.program &&
        Object.entries(labels).every(([key, said]) => sample.labels[key] === said)
          ? { ...sample, value }
          : sample,
      ),
    })),
  });
export const finding = (id: string): Change =>
  node({ findings: [{ id, problem: "it does not work", evidence: "as seen", wayOut: "do this about it" }] });
export const file =
  (path: string, is: NonNullable<Evidence["files"]>[number]["is"]): Change =>
  ({ files }) => ({
    files: some(files).map((one) => (one.path === path ? { ...one, is } : one)),
  });
export const certificate =
  (change: Partial<NonNullable<Evidence["certificates"]>[number]>): Change =>
  ({ certificates }) => ({
    certificates: some(certificates).map((one) => ({ ...one, ...change })),
  });
