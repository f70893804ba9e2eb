/** Constructs the console's side of the server; undefined where the settings switch it off. */

import type { Meeting } from "../../shared/tls/peers.ts";
import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { EdgeRoutingTable } from "../edge/sandbox-lookup.ts";
import { UpstreamPlanner } from "../edge/upstream-planner.ts";
import type { Store } from "../store/store.ts";
import { createLongAnswers } from "./long-answers.ts";
import { type Console, createRoutes } from "./routes.ts";
import { allowedNames } from "./rules.ts";
import { createSessions } from "./sessions.ts";

interface ConsoleSources {
  readonly store: Store;
  readonly callers: Pick<Callers, "adminTokens">;
  readonly routes: EdgeRoutingTable;
  readonly nodeToken: (nodeId: string) => string;
  readonly meeting: (nodeId: string) => Meeting | undefined;
}

export function createConsole({ config, now, alone }: Base, sources: ConsoleSources): Console | undefined {
  if (config.console === "off") return undefined;
  const { store, callers, routes, nodeToken: token, meeting } = sources;
  const { keys, sandboxes } = store;
  const sessions = createSessions({ sessions: store.sessions, keys, adminTokens: callers.adminTokens, now });
  return createRoutes({
    sessions,
    longAnswers: createLongAnswers(sessions),
    envd: {
      sandboxes,
      routes,
      planner: new UpstreamPlanner({ token, meeting, mayDialStraight: () => alone }),
    },
    hosts: allowedNames(config.consoleHosts, config.publicUrl),
  });
}
