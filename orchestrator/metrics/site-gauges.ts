/** Metrics of the certificate that clients on other machines see. */

import { Gauge, type Registry } from "prom-client";
import type { Site } from "../../shared/tls/site/files.ts";

export type ShownSite = Pick<Site, "until" | "findings">;

export function siteGauges(registers: Registry[], site: ShownSite): void {
  const gauge = (name: string, help: string, labelNames: string[], read: (one: Gauge) => void) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        read(this);
      },
    });
  const expires = "When the certificate that clients on other machines see expires, Unix time";
  gauge("svc_certificate_expiry_timestamp_seconds", expires, [], (one) => one.set(site.until / 1000));
  gauge(
    "svc_finding",
    "1 for each check of this program that has found something, by the check's name",
    ["check"],
    (one) => {
      for (const { id } of site.findings()) one.set({ check: id }, 1);
    },
  );
}
