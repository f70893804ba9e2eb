export interface MachineProblem {
  readonly id: string;
  readonly stops: boolean;
  readonly problem: string;
  readonly evidence: string;
  readonly wayOut: string;
}
export interface MachineCheck {
  readonly id: string;
  readonly when: "machine" | "docker" | "start";
}
export const CHECKS: readonly MachineCheck[];
export function problems(when: MachineCheck["when"], facts: object): readonly MachineProblem[];
export function within(range: string, other: string): boolean;
