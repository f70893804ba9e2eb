/** Constructs the sandbox's session, what `/init` changes of it, and `/warm`. */

import type { Journal } from "../runtime/journal.ts";
import type { Users } from "../system/users.ts";
import { Initialiser } from "./init.ts";
import { NO_SETTINGS, Session } from "./session.ts";
import { warmUp } from "./warm.ts";

interface InitConfig {
  readonly controlToken: string | undefined;
  /** PATH of the image. */
  readonly path: string | undefined;
  /** LANG of the image. */
  readonly language: string | undefined;
  /** Path of the svc-exec program. */
  readonly helper: string;
  readonly root: string;
}

interface Init {
  readonly session: Session;
  readonly initialiser: Initialiser;
  /** Runs the code of first commands once through envd's own port, so that it is compiled. */
  readonly warm: (port: number) => Promise<void>;
}

export function createInit(config: InitConfig, deps: { readonly users: Users; readonly journal: Journal }): Init {
  const { helper, root } = config;
  const { users, journal } = deps;
  const session = new Session(users, config);
  const warm = async (port: number) => {
    const directory = `${root === "/" ? "" : root}/run`;
    // An envd that has its identity keeps it.
    const controlToken = session.settings === NO_SETTINGS ? config.controlToken : undefined;
    await warmUp({ port, program: helper, directory, controlToken });
    journal.clear();
  };
  return { session, initialiser: new Initialiser(session, journal, root), warm };
}
