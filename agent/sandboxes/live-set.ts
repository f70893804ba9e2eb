/** The executions of this node by id, each in its stage, and the route of each sandbox that runs. Pure. */

import type { Started } from "../../shared/agent-api/routes.ts";
import type { Sandbox } from "./sandbox.ts";

type Entry =
  | {
      readonly is: "starting";
      readonly sandboxId: string;
      readonly done: Promise<Started>;
      readonly cancel: AbortController;
    }
  | { readonly is: "running"; readonly sandbox: Sandbox }
  /** The sandbox is being paused: it has no route, and runs again if the pause fails. */
  | { readonly is: "leaving"; readonly sandboxId: string; readonly sandbox: Sandbox; readonly done: Promise<void> }
  | { readonly is: "stopping"; readonly sandboxId: string; readonly done: Promise<void> };

export type LiveSet = ReturnType<typeof createLiveSet>;

export function createLiveSet() {
  const entries = new Map<string, Entry>();
  const routes = new Map<string, Sandbox>();
  const all = () => [...entries.values()];
  return {
    entries,
    routes,
    add: (sandbox: Sandbox): void => {
      entries.set(sandbox.executionId, { is: "running", sandbox });
      routes.set(sandbox.sandboxId, sandbox);
    },
    route: (sandboxId: string): { executionId: string; address: string; controlToken: string } | undefined => {
      const sandbox = routes.get(sandboxId);
      if (sandbox === undefined) return undefined;
      const { executionId, container } = sandbox;
      return { executionId, address: container.slot.address, controlToken: container.controlToken };
    },
    get: (executionId: string): Sandbox | undefined => {
      const entry = entries.get(executionId);
      return entry?.is === "running" ? entry.sandbox : undefined;
    },
    running: (): Sandbox[] => all().flatMap((entry) => (entry.is === "running" ? [entry.sandbox] : [])),
    leaving: (): Sandbox[] => all().flatMap((entry) => (entry.is === "leaving" ? [entry.sandbox] : [])),
    /** From its start to the begin of its end, also while it is paused or rewound. */
    isHere: (sandboxId: string): boolean =>
      all().some((entry) => entry.is !== "stopping" && sandboxOf(entry) === sandboxId),
    starting: (): number => all().filter(({ is }) => is === "starting").length,
  };
}

export function sandboxOf(entry: Entry): string {
  return entry.is === "running" ? entry.sandbox.sandboxId : entry.sandboxId;
}
