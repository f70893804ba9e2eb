import type { FastifyReply, FastifyRequest } from "fastify";
import { expect, test } from "vitest";
import { createRecording } from "../../../../orchestrator/audit/recording.ts";
import { createRefusals } from "../../../../orchestrator/audit/refusals.ts";
import { type AuditScope, owingScope } from "../../../../orchestrator/store/audit/scope.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { areCollected } from "../../../support/runner/garbage.ts";

const route = { method: "POST", path: "/sandboxes", access: "project", status: 201 } as unknown as Route;

test("a connection that a request has opened keeps what the log says of the request, and not the request", async () => {
  const recording = createRecording({
    writer: { add: () => undefined },
    refusals: createRefusals(() => 0),
    now: () => 0,
  });
  const handled = async () => {
    const request = { id: "r", ip: "127.0.0.1", params: {}, headers: {} } as unknown as FastifyRequest;
    const reply = { statusCode: 201 } as FastifyReply;
    const input = { body: { templateID: "base", metadata: { large: "x".repeat(1_000) } } };
    const seen: { scope?: AuditScope | undefined } = {};
    await recording.run({ operation: "create", route, request, reply, input } as never, () => {
      seen.scope = owingScope();
      return Promise.resolve();
    });
    return { scope: seen.scope, gone: [new WeakRef(request), new WeakRef(reply), new WeakRef(input.body)] };
  };
  const { scope, gone } = await handled();
  await expect.poll(() => areCollected(...gone)).toBe(true);
  expect(scope?.entry()).toMatchObject({ action: "create", details: '{"templateID":"base"}' });
});
