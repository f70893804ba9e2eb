/**
 * Ends the connections that leave a paused sandbox. Its memory on the disk has none; its frozen container, which a resume
 * thaws, loses them here.
 */

import type { Log } from "../../../shared/program/log.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Gate } from "../../network/gate.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Connections } from "./connections.ts";

export interface OutsideConnections {
  /**
   * Opens the network of a frozen sandbox from which connections leave, so that the peers see the end. The caller closes it. Never
   * throws: where the kernel cannot end connections, their peers do so in their time.
   */
  end(sandbox: Sandbox): Promise<void>;
  /** Before a frozen container is thawed: ends them if this agent process has not. Never throws. */
  ended(container: LiveContainer): Promise<void>;
}

interface OutsideConnectionsDeps {
  readonly connections: Connections;
  readonly gate: Gate;
  readonly log: Log;
}

export function outsideConnections({ connections, gate, log }: OutsideConnectionsDeps): OutsideConnections {
  const done = new WeakSet<LiveContainer>();
  const end = async (container: LiveContainer) => {
    try {
      await connections.endOutside(container.slot);
      done.add(container);
    } catch (error) {
      log.warn({ err: error, containerId: container.id }, "could not end the connections that leave a paused sandbox");
    }
  };
  return {
    async end({ container, executionId, sandboxId, egress }) {
      if (!(await connections.areOutside(container.pid))) return void done.add(container);
      await gate
        .open(container.slot, { executionId, sandboxId }, egress)
        .catch((error: unknown) => log.warn({ err: error, sandboxId }, "could not tell the peers of a pause"));
      await end(container);
    },
    async ended(container) {
      if (!done.delete(container)) {
        await end(container);
        done.delete(container);
      }
    },
  };
}
