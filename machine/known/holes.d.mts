export interface VersionFacts {
  readonly runc: { readonly version: string; readonly changes: string };
  readonly kernel: { readonly release: string; readonly build: string };
}
export interface Hole {
  readonly program: "runc" | "kernel";
  readonly id: string;
  readonly what: string;
}
export const WAYS_OUT: Readonly<Record<Hole["program"], string>>;
export function known(facts: VersionFacts): readonly Hole[];
