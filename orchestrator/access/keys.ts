/** Handlers of API keys, for members and for operators. */

import type { Static } from "typebox";
import type { CreatedTeamApiKey, keyApi, NewKey, TeamApiKey } from "../../shared/api/teams.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { SCOPES } from "../../shared/http/scopes.ts";
import { instant, iso } from "../forms/time.ts";
import type { KeyStore } from "../store/keys/keys.ts";
import type { KeyRecord } from "../store/keys/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Identity } from "./key-cache.ts";
import type { KeyUses } from "./key-uses.ts";
import { checkGrant, nameOf, type ProjectCaller } from "./project-caller.ts";

export interface KeysDeps {
  readonly keys: KeyStore;
  readonly uses: KeyUses;
  readonly identity: Identity;
  readonly now: () => number;
}

export interface Keys {
  /** Masked, the newest first. */
  list(project: Project): Promise<TeamApiKey[]>;
  /** @throws {AppError} bad_request, or forbidden where the caller's own key may do less. */
  create(caller: ProjectCaller, made: NewKey): Promise<Static<typeof CreatedTeamApiKey>>;
  /** The change is in force once this resolves. @throws {AppError} as `create`, and not_found. */
  change(caller: ProjectCaller, id: string, change: NewKey): Promise<void>;
  /** The key no longer works once this resolves. @throws {AppError} not_found. */
  delete(project: Project, id: string): Promise<void>;
}

export function createKeys({ keys, uses, identity, now }: KeysDeps): Keys {
  /** @throws {AppError} bad_request for a time that has passed */
  function future(expiresAt: string | undefined): number | undefined {
    if (expiresAt === undefined) return undefined;
    const at = instant(expiresAt);
    if (at > now()) return at;
    throw new AppError("bad_request", `body field 'expiresAt': ${expiresAt} is not in the future`);
  }

  return {
    async list(project) {
      // The list shows uses of the last seconds too.
      await uses.flush();
      return (await keys.list(project.id)).map(toShown);
    },
    async create(caller, { name, scopes = [...SCOPES], expiresAt: until }) {
      const expiresAt = future(until);
      checkGrant(caller, { scopes, expiresAt });
      const { key, record } = await keys.create(caller.id, { name, scopes, expiresAt, createdBy: nameOf(caller) });
      return { ...toShown(record), key };
    },
    async change(caller, id, { name, scopes, expiresAt: until }) {
      const expiresAt = future(until);
      checkGrant(caller, { scopes, ...defined({ expiresAt }) });
      const hash = await keys.change(caller.id, id, {
        name,
        ...defined({ scopes, expiresAt }),
      });
      if (hash === undefined) throw noKey(id);
      identity.forget(hash);
    },
    async delete(project, id) {
      const hash = await keys.delete(project.id, id);
      if (hash === undefined) throw noKey(id);
      identity.forget(hash);
    },
  };
}

export function createKeyHandlers(keys: Keys): Handlers<typeof keyApi, ProjectCaller> {
  return {
    listKeys: (_, { caller }) => keys.list(caller),
    createKey: ({ body }, { caller }) => keys.create(caller, body),
    renameKey: ({ params, body }, { caller }) => keys.change(caller, params.apiKeyID, body),
    deleteKey: ({ params }, { caller }) => keys.delete(caller, params.apiKeyID),
  };
}

function toShown(key: KeyRecord): TeamApiKey {
  return {
    id: key.id,
    name: key.name,
    mask: {
      prefix: "svc_",
      valueLength: key.valueLength,
      maskedValuePrefix: key.maskPrefix,
      maskedValueSuffix: key.maskSuffix,
    },
    createdAt: iso(key.createdAt),
    createdBy: key.createdBy === undefined ? null : { id: key.createdBy, email: null },
    lastUsed: key.lastUsedAt === undefined ? null : iso(key.lastUsedAt),
    scopes: [...key.scopes],
    expiresAt: key.expiresAt === undefined ? null : iso(key.expiresAt),
  };
}

function noKey(id: string): AppError {
  return new AppError("not_found", `API key '${id}' not found`);
}
