/** The company's network of a fake machine: what the agent sends of it, and the bodies of /init in which it did. */

import type { CaFor, EnvdInit, NetworkVariables } from "../../../agent/containers/envd.ts";

export interface FakeCompany {
  certificates: string;
  variables: Readonly<Record<string, string>>;
  /** All bodies of /init, in order. */
  readonly inits: EnvdInit[];
  readonly deps: { readonly caFor: CaFor; readonly networkVariables: NetworkVariables };
}

export function fakeCompany(): FakeCompany {
  const company: FakeCompany = {
    certificates: "",
    variables: {},
    inits: [],
    deps: {
      caFor: () => Promise.resolve(company.certificates),
      networkVariables: () => Promise.resolve(company.variables),
    },
  };
  return company;
}
