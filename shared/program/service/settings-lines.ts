/** Lines `NAME=value` of a file that shells and systemd read too, as `scripts/host/services/settings` writes them. Pure. */

export function settingsIn(text: string): Record<string, string> {
  const found = text.split("\n").flatMap((line) => {
    const [, name, value = ""] = /^(?:export )?([A-Z][A-Z0-9_]*)=(.*)$/.exec(line.trim()) ?? [];
    if (name === undefined) return [];
    const plain = value.replace(/^"(.*)"$/, "$1").replace(/^'(.*)'$/, "$1");
    return [[name, plain.replaceAll(/\\([\\"$`])/g, "$1")] as const];
  });
  return Object.fromEntries(found);
}
