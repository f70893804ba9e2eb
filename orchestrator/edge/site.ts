/** Opens the port with TLS for clients on other machines, where the settings name a certificate. The edge program and the orchestrator both do. */

import type { Socket } from "node:net";
import { connectionLimits } from "../../shared/http/connections/connection-limits.ts";
import { siteOf } from "../../shared/http/reach.ts";
import { roomFor } from "../../shared/program/descriptors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { openFront } from "../../shared/proxy/front/front.ts";
import { hostOfDomain } from "../../shared/tls/site/certificate.ts";
import { openSite, type Site } from "../../shared/tls/site/files.ts";

/** Share of the process's descriptors for connections that carry streams; others are counted where they are served too. */
const FRONT_SHARE = 1 / 16;
/** How long streams under way may go on when the program stops: the servers behind the port have ended theirs before. */
const CLOSE_MS = 1_000;

interface SiteSettings {
  readonly domain?: string | undefined;
  readonly tlsCertFile?: string | undefined;
  readonly tlsKeyFile?: string | undefined;
  readonly tlsHost: string;
  readonly tlsPort: number;
}

export interface SiteDeps {
  readonly log: Log;
  readonly now: () => number;
  readonly teardown: Teardown;
  readonly isProxy: (address: string) => boolean;
}

/** Reads the certificate. Undefined: the settings name none. @throws {ConfigError} it cannot be used */
export async function readSite(settings: SiteSettings, deps: SiteDeps): Promise<Site | undefined> {
  const named = siteOf(settings);
  if (named === undefined) return undefined;
  const site = await openSite({ ...named, now: deps.now, log: deps.log });
  deps.teardown.add("certificate", () => site.stop());
  return site;
}

/** Where the port leads: a connection for the API, and any other one. */
export interface Behind {
  /** Absent: this program has no API. */
  readonly api?: (connection: Socket) => void;
  readonly edge?: (connection: Socket) => void;
}

/** Resolves with the port's number when it listens. */
export async function openSitePort(
  settings: SiteSettings,
  site: Site,
  { api, edge }: Behind,
  { log, teardown, isProxy }: SiteDeps,
): Promise<number> {
  const host = hostOfDomain(settings.domain ?? "");
  const limits = connectionLimits({
    ...roomFor(FRONT_SHARE, { total: 0, perAddress: 0 }),
    name: "clients",
    isShared: isProxy,
    log,
  });
  const front = await openFront({
    host: settings.tlsHost,
    port: settings.tlsPort,
    shown: site,
    admits: (socket) => limits.admit(socket),
    serve(name, connection) {
      const forApi = name === `api.${host}` || name === host;
      const server = forApi ? (api ?? edge) : (edge ?? api);
      if (server === undefined) connection.destroy();
      else server(connection);
    },
  });
  teardown.add("port for clients", async () => {
    const limit = setTimeout(() => front.destroy(), CLOSE_MS);
    await front.close();
    clearTimeout(limit);
    front.destroy();
  });
  log.info({ host: settings.tlsHost, port: front.port, domain: settings.domain }, "listening with TLS for clients");
  return front.port;
}
