/** Files with settings, keys and data of the platform: whose they are, and who else may read them. */

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { textOf } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import type { OwnFile } from "./evidence.ts";

export interface User {
  readonly uid: number;
  readonly gid: number;
}

const ROOT: User = { uid: 0, gid: 0 };

/** The user of the orchestrator. Undefined where `up` has not made it. */
export function serviceUser(passwd = textOf("/etc/passwd") ?? ""): User | undefined {
  const [, uid, gid] = /^svc:[^:]*:(\d+):(\d+):/m.exec(passwd) ?? [];
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

interface Wanted extends User {
  readonly path: string;
  readonly mode: number;
  /** It is made later, or only where it is used: its absence is no failure. */
  readonly optional?: true;
}

export async function lookAtFiles({ instance }: Machine): Promise<readonly OwnFile[]> {
  const { config, state } = instance.places;
  if (!existsSync(config)) return [];
  const service = serviceUser() ?? ROOT;
  const shared = { uid: 0, gid: service.gid };
  const has = (program: (typeof instance.programs)[number]) => instance.programs.includes(program);
  const database = instance.setting("orchestrator", "SVC_DATABASE") ?? join(state, "orchestrator/svc.db");
  const isSqlite =
    instance.setting("orchestrator", "DATABASE_URL") === undefined &&
    instance.setting("orchestrator", "DATABASE_URL_FILE") === undefined;
  const ofOrchestrator: readonly Wanted[] = [
    { path: join(config, "orchestrator.env"), mode: 0o600, ...ROOT },
    { path: join(config, "admin-token"), mode: 0o600, ...service },
    { path: join(config, "secrets.key"), mode: 0o600, ...service, optional: true },
    { path: join(state, "orchestrator"), mode: 0o700, ...service },
    ...(isSqlite
      ? ["", "-wal", "-shm"].map(
          (end): Wanted => ({ path: `${database}${end}`, mode: 0o644, ...service, optional: true }),
        )
      : []),
  ];
  const ofAgent: readonly Wanted[] = [
    { path: join(config, "agent.env"), mode: 0o600, ...ROOT },
    {
      path: instance.setting("agent", "SVC_SEAL_KEY_FILE") ?? join(config, "seal.key"),
      mode: 0o600,
      ...ROOT,
      optional: true,
    },
    { path: join(state, "agent"), mode: 0o700, ...ROOT },
    { path: join(state, "agent/agent.db"), mode: 0o600, ...ROOT, optional: true },
    { path: join(state, "agent/membership"), mode: 0o700, ...ROOT, optional: true },
  ];
  const wanted: readonly Wanted[] = [
    { path: config, mode: 0o750, ...shared },
    { path: join(config, "config.env"), mode: 0o600, ...ROOT, optional: true },
    ...instance.programs.map(
      (program): Wanted => ({ path: join(config, `${program}.own.env`), mode: 0o600, ...ROOT, optional: true }),
    ),
    ...(has("orchestrator") ? ofOrchestrator : []),
    ...(has("agent") ? ofAgent : []),
    ...(has("edge") ? [{ path: join(config, "edge.env"), mode: 0o600, ...ROOT }] : []),
  ];
  return wanted.flatMap(({ optional, ...file }): readonly OwnFile[] => {
    const found = statSync(file.path, { throwIfNoEntry: false });
    if (found === undefined && optional === true) return [];
    const is = found && { mode: found.mode & 0o777, uid: found.uid, gid: found.gid };
    return [{ ...file, is }];
  });
}
