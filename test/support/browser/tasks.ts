/**
 * What somebody does who opens the console for the first time: ten tasks, each from the list of sandboxes on, with what it takes.
 * docs/console.md has the table, and test/browser/newcomer*.test.ts do each task and count. Pure.
 */

export interface Task {
  readonly asks: string;
  readonly way: string;
  /** Buttons, links, tabs and boxes that are pressed; a choice from a list is two. */
  readonly presses: number;
  /** Fields that are filled in; Ctrl K is one. */
  readonly fields: number;
}

export const TASKS = {
  refused: {
    asks: "Why can this sandbox not reach that host?",
    way: "the sandbox, “Network”: the row of the host has the rule and the reason",
    presses: 2,
    fields: 0,
  },
  killed: {
    asks: "Who killed the sandbox with this id?",
    way: "Ctrl K, the id, Enter: “Who changed it” names the key or the person",
    presses: 0,
    fields: 1,
  },
  usage: {
    asks: "Give me yesterday’s use as a file",
    way: "“Project”, time “yesterday”, “Save as CSV”; the sum stands above the charts",
    presses: 4,
    fields: 0,
  },
  snapshot: {
    asks: "Start another one from this snapshot",
    way: "“Snapshots”, “Start from it”",
    presses: 2,
    fields: 0,
  },
  port: {
    asks: "Open the port at which its server listens",
    way: "the sandbox, “Processes and ports”, the address",
    presses: 3,
    fields: 0,
  },
  pause: {
    asks: "Find the sandbox with this label, and pause it",
    way: "“Filter”, its box, “Pause”",
    presses: 2,
    fields: 1,
  },
  build: {
    asks: "Which build of a template failed, and why?",
    way: "“Templates”, the one with the state “error”: its log and the reason are open",
    presses: 2,
    fields: 0,
  },
  webhook: {
    asks: "Send the event again that the webhook did not get",
    way: "“Webhooks”, “Deliveries”, “Send again”; “Failed only” leaves the others out",
    presses: 3,
    fields: 0,
  },
  rotate: {
    asks: "Rotate this key",
    way: "“Project”, “Rotate”; later “Revoke the earlier one”, twice",
    presses: 4,
    fields: 0,
  },
  drain: {
    asks: "Drain a node, and watch (operators)",
    way: "“Platform”, “Drain”, “Begin the drain”: each sandbox has its state",
    presses: 3,
    fields: 0,
  },
} as const satisfies Readonly<Record<string, Task>>;

/** As docs/console.md has it. */
export function taskTable(): string {
  return [
    "| task | way | presses | fields |",
    "|---|---|---|---|",
    ...Object.values<Task>(TASKS).map(
      ({ asks, way, presses, fields }) => `| ${asks} | ${way} | ${presses} | ${fields} |`,
    ),
  ].join("\n");
}
