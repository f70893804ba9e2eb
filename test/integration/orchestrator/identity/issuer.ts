/** The issuer of identity tokens on a database of its own, with its documents on a real server and a clock that tests set. */

import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { addCors } from "../../../../orchestrator/api/cors.ts";
import { OrchestratorConfig } from "../../../../orchestrator/config.ts";
import { startWorkloadIdentity } from "../../../../orchestrator/identity/wire.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import type { Database } from "../../../../orchestrator/store/tables.ts";
import { discoveryApi } from "../../../../shared/api/identity/identity.ts";
import { serve } from "../../../../shared/http/serve.ts";
import { createServer } from "../../../../shared/http/server.ts";
import { readConfig } from "../../../../shared/program/config.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { loop } from "../../../../shared/program/loop.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { sandboxRecord } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

export const MINUTE = 60_000;
const PROJECT = "0b5f2f0e-5a6c-4c5c-9d9f-000000000001";

export const AUDIENCE = "https://sts.example.com/ Äudience";

/** A sandbox with one token, `aws`. */
export const SANDBOX = sandboxRecord({
  id: "isandbox1",
  projectId: PROJECT,
  templateId: "template1",
  executionId: "00000000-0000-4000-8000-00000000000a",
  iam: { tokens: { aws: { audience: AUDIENCE, tokenType: "JWT-SVID" } } },
});

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;

export interface IssuerOptions {
  readonly config?: Partial<OrchestratorConfig>;
  readonly database?: Database;
  /** What every line of the log is given to. */
  readonly onLog?: (line: string) => void;
}

export async function startIssuer({ config, database, onLog = () => undefined }: IssuerOptions = {}) {
  const opened = database === undefined ? await openTestDatabase() : undefined;
  const clock = { at: Date.now() };
  const now = () => clock.at;
  const log = createLog({ component: "test", level: "trace", destination: { write: onLog } });
  const teardown = new Teardown(log);
  onTestFinished(async () => {
    await teardown.run();
    await opened?.close();
  });
  const db = (database ?? opened?.database) as Database;
  const store: Store = createStore(db, now, testSeal);
  const given = {
    ...readConfig(OrchestratorConfig, {
      SVC_ADMIN_TOKEN: "0123456789abcdef",
      SVC_NODE_KEY: "0123456789abcdef",
      SVC_SEED: "0123456789abcdef",
      SVC_ENCRYPTION_KEY: "0123456789abcdef",
    }),
    ...config,
  };
  const base = { config: given, sealing: testSeal, teardown, log, now, rounds: loop };
  const own: { url?: string } = {};
  const identity = await startWorkloadIdentity(base, { store, apiUrl: () => own.url });
  const server = createServer(log);
  addCors(server);
  serve(server, discoveryApi, identity.handlers.discovery, () => undefined);
  await server.listen({ host: "127.0.0.1", port: 0 });
  teardown.add("server", () => server.close());
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  own.url = url;
  const { identityKeys, rotateIdentityKey } = identity.handlers.identity;
  // The handlers take nothing from the context.
  const context = {} as never;

  return {
    url,
    clock,
    db,
    store,
    async token(sandbox = SANDBOX): Promise<string> {
      const made = await identity.tokens.tokenFor(sandbox, "aws");
      if (made === undefined) throw new Error("the sandbox has no token");
      return made.value;
    },
    tokens: identity.tokens,
    rotate: async (revoke?: string) =>
      (await rotateIdentityKey({ body: revoke === undefined ? {} : { revoke } } as never, context)).keys,
    keys: async () => (await identityKeys({} as never, context)).keys,
    round: () => identity.round(),
    jwks: async () => (await (await fetch(`${url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] },
  };
}
