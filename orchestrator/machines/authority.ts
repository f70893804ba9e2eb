/**
 * The platform's authorities from the store, the first one made when there is none; and this orchestrator's own certificate, kept
 * fresh. While an authority is replaced, both are trusted, and the certificate is of the one that signs.
 */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { type Authority, makePlatformAuthority, openAuthority } from "../../shared/tls/authority.ts";
import { type Credentials, factsOf, renewalAt } from "../../shared/tls/credentials.ts";
import { digestOf } from "../../shared/tls/digest.ts";
import { type LiveCredentials, liveCredentials } from "../../shared/tls/live.ts";
import { ORCHESTRATOR } from "../../shared/tls/names.ts";
import { type AuthorityStore, IN_FORCE, NEXT } from "../store/machines/authorities.ts";
import type { AuthorityRecord } from "../store/machines/record.ts";
import { authorityKeyContext } from "../store/sealed/contexts.ts";

interface AuthoritiesDeps {
  readonly store: Pick<AuthorityStore, "all" | "add">;
  readonly sealing: Seal;
  readonly now: () => number;
}

/** The authorities as the database had them at the last look. */
export interface Known {
  readonly inForce: AuthorityRecord;
  /** Undefined: none is to take its place. */
  readonly next: AuthorityRecord | undefined;
  readonly signer: Authority;
  /** PEM, the signer first. */
  readonly trusted: readonly string[];
}

export interface Authorities extends Pick<Authority, "sign"> {
  readonly known: Known;
  /** Reads the database. */
  refresh(): Promise<Known>;
  /** The digest that a new join token names. @throws {AppError} failed_precondition while the signer is about to change */
  digestForJoin(): Promise<string>;
  issue(name: string, at: number): Promise<Credentials>;
}

export async function openAuthorities({ store, sealing, now }: AuthoritiesDeps): Promise<Authorities> {
  const found = await store.all();
  // Another orchestrator may have just made one: the first one holds.
  if (found.length === 0) await store.add(await newAuthority(IN_FORCE, { sealing, now }));
  let known = await read(await store.all());

  async function read(records: readonly AuthorityRecord[]): Promise<Known> {
    const inForce = records.find(({ id }) => id === IN_FORCE);
    if (inForce === undefined) throw new AppError("internal", "the database has no authority of the platform");
    const next = records.find(({ id }) => id === NEXT);
    const signs = next?.signsSince === undefined ? inForce : next;
    const key = sealing.open(signs.sealedKey, authorityKeyContext(signs.id));
    const signer = await openAuthority({ certificate: signs.certificate, key });
    const others = records.filter(({ id }) => id !== signs.id).map(({ certificate }) => certificate);
    return { inForce, next, signer, trusted: [signs.certificate, ...others] };
  }

  async function refresh(): Promise<Known> {
    const records = await store.all();
    if (!isSame(records, known)) known = await read(records);
    return known;
  }

  return {
    get known() {
      return known;
    },
    refresh,
    // Another orchestrator may have made another one the signer.
    sign: async (request, name, at) => (await refresh()).signer.sign(request, name, at),
    async digestForJoin() {
      const { signer, next } = await refresh();
      if (next === undefined || next.signsSince !== undefined) return signer.digest;
      throw new AppError(
        "failed_precondition",
        "the platform's authority is being replaced, and a token from now would be of the former one: make it in some minutes, when `svc rotate status` says that the new one signs",
      );
    },
    async issue(name, at) {
      const { signer, trusted } = known;
      return { ...(await signer.issue(name, at)), authority: trusted.join("") };
    },
  };
}

export async function newAuthority(
  id: string,
  { sealing, now }: Pick<AuthoritiesDeps, "sealing" | "now">,
): Promise<AuthorityRecord> {
  const made = await makePlatformAuthority(now());
  const sealedKey = sealing.close(made.key, authorityKeyContext(id));
  return { id, certificate: made.certificate, sealedKey, createdAt: now(), signsSince: undefined };
}

function isSame(records: readonly AuthorityRecord[], { inForce, next }: Known): boolean {
  const says = ({ id, certificate, signsSince }: AuthorityRecord) =>
    `${id} ${digestOf(certificate)} ${signsSince ?? 0}`;
  const before = [inForce, ...(next === undefined ? [] : [next])].map(says);
  return records.length === before.length && records.every((record) => before.includes(says(record)));
}

interface OwnDeps {
  readonly now: () => number;
  readonly log: Log;
  readonly teardown: Teardown;
  /** Between two looks at the authorities. */
  readonly everyMs: number;
}

/** The key is made anew with each certificate and is nowhere but in memory. */
export async function ownCredentials(
  authorities: Authorities,
  { now, log, teardown, everyMs }: OwnDeps,
): Promise<LiveCredentials> {
  const own = liveCredentials(await authorities.issue(ORCHESTRATOR, now()));
  const renewing = loop({ name: "own certificate", everyMs, log }, async () => {
    const { trusted } = await authorities.refresh();
    const isChanged = own.current.authority !== trusted.join("");
    if (!isChanged && now() < renewalAt(factsOf(own.current.certificate))) return;
    own.replace(await authorities.issue(ORCHESTRATOR, now()));
    log.info({ authorities: trusted.map(digestOf) }, "renewed the orchestrator's certificate");
  });
  teardown.add("own certificate", () => renewing.stop());
  return own;
}
