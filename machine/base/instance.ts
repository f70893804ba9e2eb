/** Names, places and settings of one platform on this machine, as scripts/lib/instance.sh has them. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settingsIn } from "../../shared/program/service/settings-lines.ts";

export type Program = "orchestrator" | "agent" | "edge";

export interface Instance {
  /** Empty for the platform without a name. */
  readonly name: string;
  /** `/`, and for tests another directory. */
  readonly root: string;
  readonly role: string;
  /** Those that run on this machine. */
  readonly programs: readonly Program[];
  /** `svcNAME`: prefix of links and namespaces, and name of the firewall's table. */
  readonly network: string;
  readonly places: {
    readonly config: string;
    readonly state: string;
    readonly run: string;
    readonly log: string;
    /** The installed programs. */
    readonly app: string;
    readonly envdRuntime: string;
    readonly bin: string;
  };
  /** As the program sees it: the operator's own file wins. */
  readonly setting: (program: Program, name: string) => string | undefined;
  /** Every setting of the program, as its environment. */
  readonly environment: (program: Program) => Readonly<Record<string, string>>;
}

const NAME = /^[a-z][a-z0-9]{0,4}$/;

/** @param root of the machine */
export function readInstance(name: string, root = "/"): Instance {
  if (name !== "" && !NAME.test(name)) {
    throw new Error(
      "SVC_INSTANCE is wrong: it has one to five lower-case letters or digits and begins with a letter, such as test",
    );
  }
  const suffix = name === "" ? "" : `-${name}`;
  const places = {
    config: join(root, `etc/svc${suffix}`),
    state: join(root, `var/lib/svc${suffix}`),
    run: join(root, `run/svc${suffix}`),
    log: join(root, `var/log/svc${suffix}`),
    app: join(root, `opt/svc/app/current${suffix}`),
    envdRuntime: join(root, `opt/svc/envd-runtime/current${suffix}`),
    bin: join(root, "opt/svc/bin"),
  };
  const role = textOf(join(places.config, "role"))?.trim() ?? "";
  const environment = (program: Program) => ({
    ...settingsIn(textOf(join(places.config, `${program}.env`)) ?? ""),
    ...settingsIn(textOf(join(places.config, `${program}.own.env`)) ?? ""),
  });
  return {
    name,
    root,
    role,
    programs: programsOf(role),
    network: environment("agent")["SVC_NETWORK_NAME"] ?? `svc${name}`,
    places,
    environment,
    setting: (program, setting) => environment(program)[setting],
  };
}

function programsOf(role: string): readonly Program[] {
  switch (role) {
    case "node":
      return ["agent"];
    case "edge":
      return ["edge"];
    case "orchestrator":
      return ["orchestrator"];
    default:
      return ["orchestrator", "agent"];
  }
}

/** Undefined for a file that is not there, or that this user may not read. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
