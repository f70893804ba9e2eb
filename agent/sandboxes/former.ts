/** The running execution of a sandbox that is being rewound: it stands still while another one starts in its place. */

import type { Gate } from "../network/gate.ts";
import type { Former } from "./become-sandbox.ts";
import type { Sandbox } from "./sandbox.ts";

interface FormerDeps {
  readonly gate: Pick<Gate, "hold" | "open">;
  /** Reads the last log lines while it runs. Never throws, and its time is limited. */
  readonly beforeEnd: (sandbox: Sandbox) => Promise<void>;
}

export function createFormer(sandbox: Sandbox, { gate, beforeEnd }: FormerDeps): Former {
  const { executionId, sandboxId, container, egress } = sandbox;
  const { slot, cgroup } = container;
  const before = { frozen: false };
  return {
    executionId,
    containerId: container.id,
    async standStill() {
      await beforeEnd(sandbox);
      before.frozen = cgroup.frozen();
      await Promise.all([gate.hold(slot), cgroup.freeze()]);
    },
    async goOn() {
      // One that its node holds, for its disk or its lease, stays held.
      if (!before.frozen) cgroup.thaw();
      await gate.open(slot, { executionId, sandboxId }, egress);
    },
  };
}
