/** The node's file systems are read-only, or fail, for a while: what begins then fails alone, and everything goes on afterwards. */

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { type AgentInMemory, agentInMemory, problemsOnMachine } from "../../../support/agent/agent-in-memory.ts";
import { startRequest } from "../../../support/fakes/agent-parts.ts";

/** Steps that write files of the node or of its Docker. */
const WRITES = new Set(["create", "annotations", "memory annotations", "draft", "dump", "commit", "sync"]);
const expectNoProblems = (agent: AgentInMemory) => expect.poll(() => problemsOnMachine(agent)).toEqual([]);
const withMemory = () => ({ snapshotId: randomUUID(), memory: true });

test.each(["EROFS: read-only file system", "EIO: i/o error", "ENOSPC: no space left on device"])(
  "while each write fails with '%s', sandboxes run on, nothing half begins, and afterwards all is done as ever",
  async (reason) => {
    const agent = await agentInMemory();
    const { call, engine, parts } = agent;
    const [runs, begins] = [{ executionId: randomUUID() }, { executionId: randomUUID() }];
    const body = startRequest();
    await call.startExecution({ params: runs, body });
    engine.fail((step) => {
      if (WRITES.has(step)) throw Object.assign(new Error(reason), { code: reason.split(":")[0] });
    });
    const another = startRequest();
    await expect(call.startExecution({ params: begins, body: another })).rejects.toThrow();
    await expect(call.pauseExecution({ params: runs, body: withMemory() })).rejects.toThrow();
    await expect(call.checkpointExecution({ params: runs, body: withMemory() })).rejects.toThrow();
    expect(parts.sandboxes.running()).toMatchObject([runs]);
    expect(parts.sandboxes.route(body.sandboxId)).toBeDefined();
    expect(parts.stores.snapshots.all()).toEqual([]);
    await expectNoProblems(agent);

    engine.fail(() => undefined);
    await call.startExecution({ params: begins, body: another });
    const { snapshotId } = await call.pauseExecution({ params: runs, body: withMemory() });
    const again = { executionId: randomUUID() };
    await call.startExecution({ params: again, body: { ...body, origin: { is: "paused", snapshotId, memory: true } } });
    expect(parts.sandboxes.running()).toHaveLength(2);
    await expectNoProblems(agent);
  },
);
