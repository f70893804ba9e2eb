/** Which environment variables a kernel has to change. Pure. */

export type Variables = Readonly<Record<string, string>>;

/**
 * @param initial what the kernel's process was started with
 * @param applied what was set in the kernel since then
 * @param wanted what has to be set; a variable that is applied and not wanted gets its initial value back
 */
export function difference(
  initial: Variables,
  applied: Variables,
  wanted: Variables,
): { readonly set: Record<string, string>; readonly remove: string[] } {
  const now = (name: string) => own(applied, name) ?? own(initial, name);
  const set = Object.fromEntries(Object.entries(wanted).filter(([name, value]) => now(name) !== value));
  const remove: string[] = [];
  for (const name of Object.keys(applied)) {
    if (Object.hasOwn(wanted, name)) continue;
    const before = own(initial, name);
    if (before === undefined) remove.push(name);
    else if (before !== applied[name]) set[name] = before;
  }
  return { set, remove };
}

function own(variables: Variables, name: string): string | undefined {
  return Object.hasOwn(variables, name) ? variables[name] : undefined;
}

/** Leaves out what no process can have: names that are empty or have `=` or a zero byte, values with a zero byte. */
export function possible(variables: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(variables).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === "string" && /^[^=\0]+$/.test(entry[0]) && !entry[1].includes("\0"),
  );
  return Object.fromEntries(entries);
}
