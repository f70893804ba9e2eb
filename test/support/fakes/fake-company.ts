/** The company's network of a fake machine: what the agent sends of it, and the bodies of /init in which it did. */

import type { EnvdInit } from "../../../agent/containers/envd.ts";
import type { Egress } from "../../../agent/egress-supervisor/host-egress.ts";

export interface FakeCompany {
  certificates: string;
  variables: Readonly<Record<string, string>>;
  /** All bodies of /init, in order. */
  readonly inits: EnvdInit[];
  readonly egress: Pick<Egress, "caFor" | "networkVariables">;
}

export function fakeCompany(): FakeCompany {
  const company: FakeCompany = {
    certificates: "",
    variables: {},
    inits: [],
    egress: {
      caFor: () => Promise.resolve(company.certificates),
      networkVariables: () => Promise.resolve(company.variables),
    },
  };
  return company;
}
