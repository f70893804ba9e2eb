/** Whether this machine reaches the platform by its domain, as a client would: the names lead somewhere, where a certificate for them is shown. */

import type { X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { withDeadline } from "../base/deadline.ts";
import type { Machine } from "../base/this-machine.ts";
import type { Evidence } from "./evidence.ts";

const LIMIT_MS = 5_000;
/** Any name of a sandbox: those of all lead to the same place. */
const OF_A_SANDBOX = "49983-iany";

type Resolve = (name: string) => Promise<{ readonly address: string }>;

/** @param resolve as the programs of this machine do it, with its file of hosts */
export async function lookAtSite({ instance }: Machine, resolve: Resolve = lookup): Promise<Evidence["site"]> {
  const program = instance.programs.find((one) => one !== "agent");
  const setting = (name: string) => (program === undefined ? "" : (instance.setting(program, name) ?? ""));
  const [, host = "", port = "443"] = /^([^:]+)(?::(\d+))?$/.exec(setting("SVC_DOMAIN")) ?? [];
  if (host === "" || setting("SVC_TLS_CERT_FILE") === "") return { unreached: [] };
  // An edge's machine serves sandboxes alone.
  const names = program === "edge" ? [OF_A_SANDBOX] : ["api", OF_A_SANDBOX];
  const reached = await Promise.all(names.map((name) => problemOf(`${name}.${host}`, Number(port), resolve)));
  return { unreached: reached.filter((problem) => problem !== undefined) };
}

async function problemOf(name: string, port: number, resolve: Resolve): Promise<string | undefined> {
  let address: string;
  try {
    ({ address } = await withDeadline(resolve(name), LIMIT_MS));
  } catch (error) {
    return `${name} has no address here (${wordsOf(error)})`;
  }
  const place = `${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
  try {
    const shown = await certificateAt(name, address, port);
    if (shown.checkHost(name) !== undefined) return undefined;
    return `${name} leads to ${place}, where the certificate is for ${shown.subjectAltName ?? "no name"}`;
  } catch (error) {
    return `${name} leads to ${place}, where no TLS is spoken (${wordsOf(error)})`;
  }
}

/** Whether clients trust it is their matter: the platform's own authority is one that this machine may not know. */
function certificateAt(servername: string, host: string, port: number): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, servername, rejectUnauthorized: false });
    socket.setTimeout(LIMIT_MS, () => void socket.destroy(new Error("no answer")));
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error("no certificate"));
      else resolve(certificate);
    });
  });
}

function wordsOf(error: unknown): string {
  const { code, message } = error as { readonly code?: string; readonly message?: string };
  return code ?? message ?? "no reason";
}
