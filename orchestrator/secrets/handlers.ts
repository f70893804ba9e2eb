/** Handlers of the routes of secrets. Their messages are fixed: they repeat neither a value nor a reference. */

import type { Secret, secretApi } from "../../shared/api/secrets.ts";
import { answer } from "../../shared/http/answer.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import { page } from "../forms/pagination.ts";
import { iso } from "../forms/time.ts";
import type { Project } from "../store/projects/record.ts";
import type { SecretRecord } from "../store/secrets/record.ts";
import type { SecretStore } from "../store/secrets/secrets.ts";
import { checkMetadata, checkValue } from "./limits.ts";
import type { SealFor, Vault } from "./vault.ts";

export interface SecretHandlersDeps {
  readonly store: SecretStore;
  readonly vault: Vault;
  /** Most secrets of a project. */
  readonly most: number;
}

/** Writes of other processes that may come between; those of this one follow each other. */
const MOST_TRIES = 10;

interface Replacement {
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly seal: SealFor;
}

export function createSecretHandlers({ store, vault, most }: SecretHandlersDeps): Handlers<typeof secretApi, Project> {
  const inTurn = createKeyedMutex();

  async function found(project: Project, reference: string): Promise<SecretRecord> {
    const secret = await store.find(project.id, reference);
    if (secret === undefined) throw missing();
    return secret;
  }

  /** Seals the value for the version after the present one. */
  async function replace(project: Project, { id, metadata, seal }: Replacement): Promise<SecretRecord> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { version: from } = await found(project, id);
      const next = await store.replace({ id, from, metadata, sealed: seal({ id, version: from + 1 }) });
      if (next !== undefined) return next;
    }
    throw new AppError("conflict", "the secret is being changed by many requests: try again");
  }

  return {
    async listSecrets({ query }, { caller, header }) {
      const secrets = await store.list(caller.id);
      const placeOf = ({ createdAt, id }: SecretRecord) => ({ at: createdAt, name: id });
      return page(secrets, { ...query, placeOf }, header).map(toShown);
    },

    async createSecret({ body: { name, value, metadata = {} } }, { caller }) {
      checkValue(value);
      checkMetadata(metadata);
      const id = store.newId();
      const secret = { id, projectId: caller.id, name: name.toLowerCase(), metadata };
      const added = await vault.withNewKey(value, (seal) =>
        store.add({ ...secret, sealed: seal({ id, version: 1 }) }, most),
      );
      if (added === "taken") throw new AppError("conflict", "the project has a secret of this name");
      if (added === "full") {
        throw new AppError("forbidden", `the project has reached its limit of ${most} secrets: delete one first`);
      }
      return toShown(added);
    },

    async getSecret({ params }, { caller }) {
      return toShown(await found(caller, params.secretID));
    },

    async updateSecret({ params, body: { value, metadata } }, { caller }) {
      checkValue(value);
      if (metadata !== undefined) checkMetadata(metadata);
      const { id } = await found(caller, params.secretID);
      const next = (seal: SealFor) => inTurn(id, () => replace(caller, { id, metadata, seal }));
      return toShown(await vault.withNewKey(value, next));
    },

    async deleteSecret({ params }, { caller }) {
      if ((await store.delete(caller.id, params.secretID)) === undefined) throw missing();
    },
  };
}

function missing(): AppError {
  return new AppError("not_found", "the project has no such secret");
}

function toShown(secret: SecretRecord): Secret {
  return answer<Secret>({
    secretID: secret.id,
    name: secret.name,
    currentVersion: secret.version,
    metadata: { ...secret.metadata },
    createdAt: iso(secret.createdAt),
    updatedAt: iso(secret.updatedAt),
    useCount: secret.useCount,
    lastUsedAt: secret.lastUsedAt === undefined ? null : iso(secret.lastUsedAt),
  });
}
