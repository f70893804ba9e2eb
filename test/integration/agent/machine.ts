/** One machine in memory with one agent after the other on it: their sandboxes, and faults at any step. */

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { recover } from "../../../agent/recovery/apply.ts";
import { openStores } from "../../../agent/store/stores.ts";
import type { StartRequest } from "../../../shared/agent-api/routes.ts";
import { createLog } from "../../../shared/program/log.ts";
import { agentParts, type Parts, type PartsOptions, startRequest } from "../../support/fakes/agent-parts.ts";
import { type FakeEngine, fakeEngine } from "../../support/fakes/fake-engine.ts";
import { testSeal } from "../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });

export interface Running {
  readonly executionId: string;
  readonly body: StartRequest;
}

export interface Machine {
  readonly engine: FakeEngine;
  /** The parts of the current agent; a test may replace them with another agent's. */
  parts: Parts;
  readonly databasePath: string;
  readonly running: (more?: Partial<StartRequest>) => Promise<Running>;
  /** Expects a container that runs: thawed, on the network, with its inotify watches. */
  readonly expectRunning: () => void;
  readonly failAt: (step: string) => void;
  /** Resolves when the agent reaches the step, which then never ends, as if the agent were killed there. */
  readonly vanishAt: (step: string) => Promise<void>;
  /** Starts the next agent on the same machine. */
  readonly takeOver: (more?: PartsOptions, fault?: (step: string) => unknown) => Promise<void>;
}

export const snapshotRequest = (snapshotId = randomUUID()) => ({ snapshotId, memory: true });

export const again = ({ body }: Running, snapshotId: string, memory = true): StartRequest => ({
  ...body,
  origin: { is: "paused", snapshotId, memory },
});

/** Makes a new machine with its first agent for each test. */
export function machineForEach(): Machine {
  let directory: string;
  let engine: FakeEngine;
  let parts: Parts;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "svc-snapshots-"));
    engine = fakeEngine();
    parts = agentParts(engine, { databasePath: machine.databasePath });
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const machine: Machine = {
    get engine() {
      return engine;
    },
    get parts() {
      return parts;
    },
    set parts(next) {
      parts = next;
    },
    get databasePath() {
      return join(directory, "agent.db");
    },
    async running(more = {}) {
      const executionId = randomUUID();
      const body = startRequest(more);
      await parts.sandboxes.start(executionId, body);
      return { executionId, body };
    },
    expectRunning() {
      const [container] = engine.containers.values();
      expect(container).toMatchObject({ running: true, frozen: false, watches: true });
      expect([...engine.firewall.values()].filter(({ open }) => open)).toHaveLength(1);
    },
    failAt(step) {
      engine.fail((name) => {
        if (name === step) throw new Error("injected");
      });
    },
    vanishAt(step) {
      return new Promise((resolve) => {
        engine.fail((name) => {
          if (name !== step) return undefined;
          resolve();
          return new Promise(() => undefined);
        });
      });
    },
    async takeOver(more = {}, fault = () => undefined) {
      engine.fail(fault);
      const { databasePath } = machine;
      const stores = openStores(databasePath, testSeal);
      const found = await recover({ machine: engine.machine(), stores, now: Date.now, log });
      await found.cleared;
      stores.close();
      engine.fail(() => undefined);
      parts = agentParts(engine, { ...more, databasePath, before: found });
      await expect.poll(() => engine.slots.size).toBe(found.sandboxes.length + found.frozen.length);
    },
  };
  return machine;
}
