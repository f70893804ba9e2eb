/** Metrics of the certificate that clients on other machines see, and of those that the platform's machines show to each other. */

import { Gauge, type Registry } from "prom-client";
import type { Site } from "../../shared/tls/site/files.ts";

export type ShownSite = Pick<Site, "until" | "findings">;

function gaugesOn(registers: Registry[]) {
  return (name: string, help: string, labelNames: string[], read: (one: Gauge) => void) =>
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
}

export function siteGauges(registers: Registry[], site: ShownSite): void {
  const gauge = gaugesOn(registers);
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

/** Unix milliseconds. */
export interface CertificateEnds {
  /** Of the certificate that this program shows to nodes and edges. */
  readonly own: number;
  readonly authorities: readonly { readonly name: "in_force" | "next"; readonly until: number }[];
}

export function machineGauges(registers: Registry[], ends: () => CertificateEnds): void {
  const gauge = gaugesOn(registers);
  gauge(
    "svc_machine_certificate_expiry_timestamp_seconds",
    "When the certificate that this program shows to the platform's other machines expires, Unix time",
    [],
    (one) => one.set(ends().own / 1000),
  );
  gauge(
    "svc_authority_expiry_timestamp_seconds",
    "When the platform's authority expires, Unix time: the one in force, and the one that is to take its place",
    ["authority"],
    (one) => {
      for (const { name, until } of ends().authorities) one.set({ authority: name }, until / 1000);
    },
  );
}
