/** Reads which sandbox and port a request is for: from routing headers, the host name, or neither. Pure. */

import { isIP } from "node:net";
import { ENVD_PORT } from "../../shared/proxy/hop-contract.ts";

const SANDBOX_ID = /^[a-z0-9]{1,64}$/;
/** Numbers with more digits lose precision, and no port has so many. */
const PORT = /^\d{1,15}$/;

export interface Addressed {
  /** Every value of Host; exactly one is legal. */
  readonly hosts: readonly string[];
  /** Values of `Svc-Sandbox-Id` and `E2b-Sandbox-Id`. */
  readonly ids: readonly string[];
  /** Values of `Svc-Sandbox-Port` and `E2b-Sandbox-Port`. */
  readonly ports: readonly string[];
}

export type Target =
  /** `port` may be a number that no server can have: it counts as closed. */
  | { readonly is: "sandbox"; readonly sandboxId: string; readonly port: number }
  /** Neither host nor headers name a sandbox, but the request may have a signed URL. */
  | { readonly is: "none"; readonly message: string }
  | { readonly is: "bad"; readonly status: 400 | 500; readonly message: string };

const MISSING: Target = { is: "none", message: "missing header" };
const INVALID_HOST: Target = { is: "none", message: "Invalid host" };

export function targetOf(addressed: Addressed): Target {
  const { hosts } = addressed;
  const host = hosts[0];
  if (host === undefined || hosts.length > 1) return { is: "bad", status: 400, message: "Invalid host" };
  const name = hostName(host);
  const byHeader = addressed.ids.length > 0 || addressed.ports.length > 0;
  if (isShared(name)) return byHeader ? fromHeaders(addressed) : MISSING;
  const label = name.split(".", 1)[0] ?? "";
  const fromHost = name.includes(".") && label.includes("-") ? fromLabel(label) : INVALID_HOST;
  // A page on a sandbox's host must not reach another sandbox by adding headers.
  return fromHost.is === "sandbox" || !byHeader ? fromHost : fromHeaders(addressed);
}

/** The host without port and brackets, in lower case; empty for a text that cannot be the host of a URL. */
export function hostName(host: string): string {
  const lower = host.trim().toLowerCase();
  if (/[\s@/\\?#]/.test(lower)) return "";
  if (lower.startsWith("[")) return lower.slice(1, Math.max(1, lower.indexOf("]")));
  const colon = lower.indexOf(":");
  const name = colon < 0 ? lower : lower.slice(0, colon);
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

function isShared(name: string): boolean {
  return name === "localhost" || name.startsWith("sandbox.") || isIP(name) !== 0;
}

function fromLabel(label: string): Target {
  const [port = "", sandboxId = ""] = label.split("-", 2);
  return check(sandboxId, port);
}

function fromHeaders({ ids, ports }: Addressed): Target {
  const id = only(ids);
  const port = only(ports);
  if (id === null || port === null) return { is: "bad", status: 400, message: "conflicting routing headers" };
  if (id === undefined) return { is: "bad", status: 400, message: "missing header" };
  return check(id, port ?? String(ENVD_PORT));
}

/** The one value, however often it is repeated; undefined for none, null for several different ones. */
function only(values: readonly string[]): string | undefined | null {
  const said = values.filter((value) => value !== "");
  return said.every((value) => value === said[0]) ? said[0] : null;
}

function check(sandboxId: string, port: string): Target {
  if (!SANDBOX_ID.test(sandboxId)) return { is: "bad", status: 400, message: "Invalid sandbox ID" };
  if (!PORT.test(port)) {
    return {
      is: "bad",
      status: 500,
      message: `Unexpected error when routing request: invalid sandbox port ${JSON.stringify(port.slice(0, 32))}`,
    };
  }
  return { is: "sandbox", sandboxId, port: Number(port) };
}
