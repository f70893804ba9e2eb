/** Who may reach which port of a sandbox. Pure. */

import { sameSecret } from "../../shared/ids.ts";
import { ENVD_PORT } from "../../shared/proxy/hop-contract.ts";
import type { Refusal } from "./answers.ts";
import type { EdgeRoute } from "./sandbox-lookup.ts";
import type { Visitor } from "./visitor.ts";

const MAX_PORT = 65_535;

/** Whether this visitor may reach this port: the refusal, or undefined when it may. */
export function admission(route: EdgeRoute, port: number, visitor: Visitor): Refusal | undefined {
  const { sandboxId } = route;
  if (port !== ENVD_PORT && !route.allowPublicTraffic) {
    const given = visitor.trafficTokens[0];
    if (given === undefined) return { is: "token_missing", sandboxId };
    const expected = route.trafficAccessToken ?? "";
    const valid = expected !== "" && visitor.trafficTokens.some(({ value }) => sameSecret(value, expected));
    if (!valid) return { is: "token_invalid", sandboxId, header: given.header };
  }
  // After the token: a stranger learns nothing about ports.
  return port < 1 || port > MAX_PORT ? { is: "closed_port", sandboxId, port } : undefined;
}

/** A sandbox that stands still answers nothing. */
export function standing({ held, sandboxId }: EdgeRoute): Refusal | undefined {
  return held === true ? { is: "held", sandboxId } : undefined;
}
