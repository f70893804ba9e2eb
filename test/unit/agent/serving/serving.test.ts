import { expect, test } from "vitest";
import { createServing } from "../../../../agent/serving/serving.ts";
import type { OfferedStore, StoreMark } from "../../../../shared/agent-api/routes.ts";
import { newUuid } from "../../../../shared/ids.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const STORE = newUuid();
const [A, B, COPY] = [newUuid(), newUuid(), newUuid()];
const name = (opening: string) => `${STORE}.${opening}`;

/** A node with one sandbox. `answer` is what the orchestrator answers when the node asks. */
function node(answer: () => OfferedStore | undefined = () => undefined) {
  let served: StoreMark | undefined;
  const serving = createServing({
    nodeId: "n1",
    store: { get: () => served, set: (mark) => void (served = mark) },
    kept: () => 1,
    ask() {
      const offered = answer();
      if (offered !== undefined) queueMicrotask(() => serving.heard(offered));
    },
    log,
    nameLimitMs: 50,
  });
  return serving;
}

const offered = (opening: string, mark: number, more: Partial<OfferedStore> = {}): OfferedStore => ({
  storeId: STORE,
  opening,
  mark,
  knows: 1,
  ...more,
});

test("a node takes work from the orchestrator that answers it, and from those that it names", async () => {
  const serving = node();
  serving.heard(offered(A, 3, { beside: [B] }));
  await serving.admit(name(A));
  await serving.admit(name(B));
});

test("a node asks about an orchestrator that it has not heard of, and takes its work when it is named then", async () => {
  const serving = node(() => offered(A, 4, { beside: [B] }));
  serving.heard(offered(A, 3));
  await serving.admit(name(B));
});

test("a node refuses the work of an orchestrator that nobody names: it may have a copy of the database", async () => {
  const serving = node(() => offered(A, 4, { beside: [B] }));
  serving.heard(offered(A, 3, { beside: [B] }));
  await expect(serving.admit(name(COPY))).rejects.toThrow("does not know the one that asks");
});

test("a node that reports to another orchestrator of its database goes on from the mark that the first has reached", () => {
  const serving = node();
  serving.heard(offered(A, 7, { beside: [B] }));
  expect(serving.heard(offered(B, 2, { reached: 7, beside: [A] }))).toBe(true);
  expect(serving.served).toEqual({ storeId: STORE, opening: B, mark: 2 });
});

test("an older copy is refused although it names the orchestrators of the database that it is a copy of", async () => {
  const serving = node();
  serving.heard(offered(A, 7, { beside: [B] }));
  expect(serving.heard(offered(COPY, 1, { reached: 6, beside: [A, B] }))).toBe(false);
  expect(serving.refusal).toMatch(/older than what this node has seen/);
  await expect(serving.admit(name(COPY))).rejects.toThrow("older than what this node has seen");
});
