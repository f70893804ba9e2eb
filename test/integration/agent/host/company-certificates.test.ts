/** The company's certificates reach sandboxes in every way to start, and builds, on a machine in memory. */

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { agentParts, build, resources, startRequest } from "../../../support/fakes/agent-parts.ts";
import { body, buildersForEach, built } from "../builds/building.ts";
import { again, machineForEach, snapshotRequest } from "../machine.ts";

const here = machineForEach();
const { world } = buildersForEach();
const PEM = "of the company";

const lastInit = () => here.engine.company.inits.at(-1);

test("a cold start, a resume, a copy and a start from memory get the certificates of that moment", async () => {
  here.engine.company.certificates = PEM;
  here.engine.company.variables = { http_proxy: "http://10.213.0.1:5050" };
  const sandbox = await here.running();
  const { variables: networkVariables } = here.engine.company;
  expect(lastInit()).toMatchObject({ executionId: sandbox.executionId, caBundle: PEM, networkVariables });
  const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());

  // The setting changed while the sandbox was paused, with its memory and as frozen processes.
  here.engine.company.certificates = "of another one";
  here.engine.company.variables = {};
  const resumed = randomUUID();
  await here.parts.sandboxes.start(resumed, again(sandbox, snapshotId));
  expect(lastInit()).toMatchObject({ executionId: resumed, caBundle: "of another one", networkVariables: {} });

  const copied = randomUUID();
  await here.parts.taker.checkpoint(resumed, { snapshotId: copied, memory: true });
  here.engine.company.certificates = "";
  const copy = randomUUID();
  const origin = { is: "snapshot" as const, snapshotId: copied, memory: true };
  await here.parts.sandboxes.start(copy, startRequest({ origin }));
  expect(lastInit()).toMatchObject({ executionId: copy, caBundle: "" });

  const fromDisk = randomUUID();
  here.engine.company.certificates = PEM;
  await here.parts.sandboxes.start(fromDisk, startRequest({ origin: { ...origin, memory: false } }));
  expect(lastInit()).toMatchObject({ executionId: fromDisk, caBundle: PEM });
});

test("a claimed container of the pool gets the company's certificates", async () => {
  await here.parts.stop();
  here.engine.company.certificates = PEM;
  here.parts = agentParts(here.engine, { targets: [{ build, resources, size: 1 }] });
  await expect.poll(() => here.parts.pool.ids()).toHaveLength(1);
  const executionId = randomUUID();
  const started = await here.parts.sandboxes.start(executionId, startRequest());
  expect(started.warm).toBe(true);
  expect(here.engine.company.inits.find((init) => init.executionId === executionId)).toMatchObject({ caBundle: PEM });
});

test("the steps of a template build get the company's certificates", async () => {
  const made = await world();
  made.engine.company.certificates = PEM;
  const { status } = await built(made, body());
  expect(status).toBe("ready");
  expect(made.engine.company.inits.length).toBeGreaterThan(0);
  expect(made.engine.company.inits.every(({ caBundle }) => caBundle === PEM)).toBe(true);
});
