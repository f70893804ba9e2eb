/** Decides which visitor may reach which port of a sandbox. Pure. */

import { sameSecret } from "../../shared/ids.ts";
import { ENVD_PORT } from "../../shared/proxy/hop-contract.ts";
import type { Refusal } from "./answers/answers.ts";
import type { EdgeRoute } from "./sandbox-lookup.ts";
import type { Visitor } from "./visitor.ts";

const MAX_PORT = 65_535;

/** The refusal, or undefined when the visitor may reach the port. */
export function admission(route: EdgeRoute, port: number, visitor: Visitor): Refusal | undefined {
  const { sandboxId } = route;
  if (port !== ENVD_PORT && !route.allowPublicTraffic) {
    const given = visitor.trafficTokens[0];
    if (given === undefined) return { is: "token_missing", sandboxId };
    const expected = route.trafficAccessToken ?? "";
    const valid = expected !== "" && visitor.trafficTokens.some(({ value }) => sameSecret(value, expected));
    if (!valid) return { is: "token_invalid", sandboxId, header: given.header };
  }
  // After the token check, so that a visitor without a token learns nothing about ports.
  return port < 1 || port > MAX_PORT ? { is: "closed_port", sandboxId, port } : undefined;
}

/** The refusal for a held sandbox: it is frozen, so it would accept connections and never answer them. */
export function standing({ held, sandboxId }: EdgeRoute): Refusal | undefined {
  return held === true ? { is: "held", sandboxId } : undefined;
}
