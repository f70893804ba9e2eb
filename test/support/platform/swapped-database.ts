/**
 * The database of the platform's orchestrator, which a test replaces: the true one waits beside it and is put back. For SQLite.
 */

import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import SQLite from "better-sqlite3";
import type { Platform } from "./platform.ts";
import { service, settingOf } from "./programs.ts";

export interface SwappedDatabase {
  /** Copies the database while the orchestrator runs, as the documented backup does. */
  backUp(to: string): Promise<void>;
  /** Restarts the orchestrator with a copy of this file, or with no database at all. The true one waits meanwhile. */
  use(copyOf: string | undefined): Promise<void>;
  /** Restarts the orchestrator with the true database; does nothing when that is in place. */
  putBack(): Promise<void>;
  /** Whether the node has heard of a later mark of the database than this copy has, so that it can tell the copy is older. */
  isOlderThanHeard(copy: string): boolean;
  /** When the node of this platform reported last to the orchestrator, by the database in place: unix milliseconds. */
  reportedAt(): number;
}

export function swappedDatabase(platform: Platform): SwappedDatabase {
  const file = settingOf(platform, "orchestrator", "SVC_DATABASE");
  const agentFile = join(settingOf(platform, "agent", "SVC_STATE_DIR"), "agent.db");
  const folder = dirname(file);
  const aside = `${folder}-aside`;
  const parts = (place: string) => readdirSync(place).filter((name) => name.startsWith(basename(file)));

  function clear(): void {
    for (const name of parts(folder)) rmSync(join(folder, name));
  }

  return {
    async backUp(to) {
      const database = new SQLite(file, { readonly: true });
      try {
        await database.backup(to);
      } finally {
        database.close();
      }
    },
    async use(copyOf) {
      await service(platform, "stop", "orchestrator");
      if (existsSync(aside)) clear();
      else {
        mkdirSync(aside, { mode: 0o700 });
        for (const name of parts(folder)) renameSync(join(folder, name), join(aside, name));
      }
      if (copyOf !== undefined) {
        copyFileSync(copyOf, file);
        const { uid, gid } = statSync(folder);
        chownSync(file, uid, gid);
      }
      await service(platform, "start", "orchestrator");
    },
    async putBack() {
      if (!existsSync(aside)) return;
      await service(platform, "stop", "orchestrator");
      clear();
      for (const name of parts(aside)) renameSync(join(aside, name), join(folder, name));
      rmdirSync(aside);
      await service(platform, "start", "orchestrator");
    },
    isOlderThanHeard(copy) {
      const heard = one(agentFile, "select opening, mark from served_store") as Mark | undefined;
      const had = one(copy, "select mark from store_openings where id = ?", heard?.opening) as Mark | undefined;
      return heard !== undefined && heard.mark > (had?.mark ?? -1);
    },
    reportedAt() {
      const last = one(file, "select max(last_heartbeat_at) as at from nodes") as { at: number | null };
      return last.at ?? 0;
    },
  };
}

interface Mark {
  readonly opening: string;
  readonly mark: number;
}

/** The first row of the answer. */
function one(file: string, sql: string, ...values: unknown[]): unknown {
  const database = new SQLite(file, { readonly: true });
  try {
    return database.prepare(sql).get(...values);
  } finally {
    database.close();
  }
}
