/**
 * A program that speaks the egress process's side of the protocol and records each received message as a line in
 * FAKE_EGRESS_FILE. The domains `die`, `refuse` and `silent` in a policy make it die, refuse the policy or not answer.
 */

import { appendFileSync } from "node:fs";
import type { FromEgress, SandboxEgress, ToEgress } from "../../../agent/egress/channel/messages.ts";

const file = process.env["FAKE_EGRESS_FILE"] ?? "/dev/null";
const say = (message: FromEgress) => void process.send?.(message);
const known = new Map<string, SandboxEgress>();

function take(message: ToEgress): void {
  appendFileSync(file, `${JSON.stringify({ ...message, process: process.pid })}\n`);
  switch (message.is) {
    case "begin":
      for (const sandbox of message.sandboxes) known.set(sandbox.address, sandbox);
      return say({ is: "ready" });
    case "set":
      return set(message.id, message.sandbox);
    case "forget":
      known.delete(message.address);
      return say({ is: "done", id: message.id });
    case "check": {
      const decision = { verdict: "deny", rule: "fake", reason: "it is not real", dial: "address" } as const;
      return say({ is: "checked", id: message.id, decision, addresses: ["203.0.113.9"] });
    }
    case "resolved":
  }
}

function set(id: number, sandbox: SandboxEgress): void {
  const { allowDomains, rules } = sandbox.policy;
  if (allowDomains.includes("die")) process.exit(3);
  if (allowDomains.includes("silent")) return;
  if (allowDomains.includes("refuse")) return say({ is: "failed", id, message: "no" });
  known.set(sandbox.address, sandbox);
  const { executionId } = sandbox;
  for (const { host } of rules) say({ is: "resolve", id: 1, executionId, placeholder: host, host: "host.test" });
  for (const { host } of rules)
    say({ is: "used", uses: [{ executionId, placeholder: host, host: "host.test", count: 3 }] });
  const entry = { at: 5, protocol: "tcp", address: sandbox.address, port: 80, verdict: "deny", rule: "fake" } as const;
  const counted = { ...entry, count: 1, sentBytes: 0, receivedBytes: 0 };
  say({ is: "decisions", sandboxId: sandbox.sandboxId, entries: [counted], suppressed: 2 });
  say({ is: "done", id });
}

process.on("message", (message) => take(message as ToEgress));
process.once("disconnect", () => process.exit(0));
