/** Tells an operator what a change of a project does, and makes the fields of its forms what the API takes. Pure. */

type Limits = Readonly<Record<string, { readonly used: number | null }>>;

/** The acts that end or refuse something. */
export type Standing = "disable" | "ban" | "kill" | "cancel" | "delete";

interface Facts {
  readonly name: string;
  /** Running sandboxes; undefined: not known yet. */
  readonly running: number | undefined;
}

/** What the act does to the project. */
export function meaningOf(act: Standing, { name, running }: Facts): string {
  const sandboxes = running === undefined ? "Its running sandboxes" : `Its ${counted(running, "running sandbox")}`;
  const stay = `${sandboxes} ${running === 1 ? "stays" : "stay"} until ${running === 1 ? "its" : "their"} end.`;
  switch (act) {
    case "disable":
      return `‘${name}’ may then only read and delete: it starts no sandbox and no build, and its callers are shown the reason. ${stay} “Take it back” undoes this.`;
    case "ban":
      return `Every call of ‘${name}’ is refused then, also those that read. ${stay} “Take it back” undoes this.`;
    case "kill":
      return `Every sandbox of ‘${name}’ ends, those that are paused too${running === undefined ? "" : `; ${running} run now`}. What is in them is lost, but for snapshots. The project can start others.`;
    case "cancel":
      return `Every build of ‘${name}’ that waits or runs ends without a template. The project can begin others.`;
    case "delete":
      return `Nothing of ‘${name}’ comes back. Its keys end at once, and so everybody who uses them; then its sandboxes${running === undefined ? "" : ` (${running} run now)`}, snapshots, volumes, templates, secrets and webhooks are removed.`;
  }
}

/** What the limit means once it is changed. @param text the field; empty: the platform's limit holds again */
export function limitMeaning(name: string, limits: Limits, text: string): string {
  const count = limits[name]?.used ?? null;
  const used = count === null ? "it is of each sandbox" : `${count} used now`;
  if (text === "") return `‘${name}’: the platform’s limit holds again (${used}).`;
  const isBeyond = count !== null && count > Number(text);
  const beyond = isBeyond ? " What is there stays, and nothing is added before it is less." : "";
  return `‘${name}’: at most ${text} (${used}).${beyond}`;
}

/** The body's `limits`. */
export function limitChange(name: string, text: string): Readonly<Record<string, number | null>> {
  return { [name]: text === "" ? null : Number(text) };
}

/** `name=value` of each label, with commas between. @throws {Error} for a word that is none */
export function labelsIn(text: string): Readonly<Record<string, string>> {
  const words = text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf("=");
      if (at < 1) throw new Error(`‘${word}’ is no label: write name=value, and a comma between two.`);
      return [word.slice(0, at).trim(), word.slice(at + 1).trim()];
    }),
  );
}

export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "es"}`;
}
