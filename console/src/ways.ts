/** What people look for by its own words, and the screen that has it: Ctrl K finds it from every screen. Pure. */

interface Way {
  readonly name: string;
  readonly path: string;
  /** It needs a project that is looked at, or an operator. */
  readonly of: "project" | "operator";
}

const WAYS: readonly Way[] = [
  { name: "Which sandbox uses most memory", path: "/", of: "project" },
  { name: "Why a sandbox ended", path: "/events", of: "project" },
  { name: "Why the build of a template failed", path: "/templates", of: "project" },
  { name: "Put a tag on a template", path: "/templates", of: "project" },
  { name: "Start from a snapshot, or delete it", path: "/snapshots", of: "project" },
  { name: "Make a volume, and upload to it", path: "/volumes", of: "project" },
  { name: "Store or replace a secret", path: "/secrets", of: "project" },
  { name: "Make a webhook, and test it", path: "/webhooks", of: "project" },
  { name: "Send an event to a webhook again (resend)", path: "/webhooks", of: "project" },
  { name: "Make, rotate or revoke an API key", path: "/project", of: "project" },
  { name: "Save the use as a file (CSV): what it cost", path: "/project", of: "project" },
  { name: "Limits and quotas of the project", path: "/project", of: "project" },
  { name: "Audit log: who did what", path: "/project", of: "project" },
  { name: "Create, disable or delete a project", path: "/platform", of: "operator" },
  { name: "Change the limits (quota) of a project", path: "/platform", of: "operator" },
  { name: "Drain or cordon a node", path: "/platform", of: "operator" },
  { name: "Doctor’s report of a node", path: "/platform", of: "operator" },
  { name: "Alerts of the platform", path: "/platform", of: "operator" },
  { name: "Audit log of the platform", path: "/platform", of: "operator" },
];

export function waysOf(now: { readonly hasProject: boolean; readonly isOperator: boolean }): readonly Way[] {
  return WAYS.filter(({ of }) => (of === "operator" ? now.isOperator : now.hasProject));
}
