/** The line about a program in `systemctl status`: "37 sandboxes, pool 8/8, database ok". Pure. */

export interface StatusFacts {
  readonly sandboxes: number;
  /** Warm containers that are ready, and that are wanted. Absent: the program has none. */
  readonly pools?: readonly { readonly ready: number; readonly wanted: number }[];
  /** What it needs, by name, and what is wrong with it; undefined: nothing is. */
  readonly needs: Readonly<Record<string, string | undefined>>;
}

export function statusLine({ sandboxes, pools, needs }: StatusFacts): string {
  const sum = (of: "ready" | "wanted") => (pools ?? []).reduce((all, pool) => all + pool[of], 0);
  return [
    `${sandboxes} ${sandboxes === 1 ? "sandbox" : "sandboxes"}`,
    ...(pools === undefined ? [] : [`pool ${sum("ready")}/${sum("wanted")}`]),
    ...Object.entries(needs).map(([name, problem]) => `${name} ${problem ?? "ok"}`),
  ].join(", ");
}
