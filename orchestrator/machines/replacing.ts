/**
 * Replaces the platform's authority: an operator begins it, and rounds of one orchestrator go on until the former authority is dropped.
 * All of it is in the database, so what was cut goes on with the next round of any orchestrator.
 */

import type { AuthorityRotation, authorityRotationApi } from "../../shared/api/keys/authority-rotation.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import { digestOf } from "../../shared/tls/digest.ts";
import { VERSION } from "../../shared/version.ts";
import { iso } from "../forms/time.ts";
import { type AuthorityStore, IN_FORCE, NEXT } from "../store/machines/authorities.ts";
import { authorityKeyContext } from "../store/sealed/contexts.ts";
import { type Authorities, type Known, newAuthority } from "./authority.ts";
import { type Machine, nextStep, type Replacement, unableMachines } from "./authority-plan.ts";

export interface ReplacingDeps {
  readonly store: AuthorityStore;
  readonly authorities: Authorities;
  readonly sealing: Seal;
  /** When the node reported last; undefined: it has not. */
  readonly heardAt: (nodeId: string) => number | undefined;
  readonly graceMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export interface Replacing {
  /** One round of the orchestrator that leads. */
  round(): Promise<void>;
  state(): Promise<AuthorityRotation>;
  /** Begins, or joins what is under way. @throws {AppError} failed_precondition, conflict */
  begin(): Promise<void>;
}

export function createReplacing(deps: ReplacingDeps): Replacing {
  const { store, authorities, sealing, graceMs, now, log } = deps;

  const machines = async (): Promise<Machine[]> =>
    (await store.machines()).map((machine) => ({
      ...machine,
      heardAt: machine.kind === "node" ? deps.heardAt(machine.id) : undefined,
    }));

  const stepOf = async (replacement: Replacement) => nextStep(replacement, await machines(), { now: now(), graceMs });

  async function drop({ inForce, next }: Known): Promise<void> {
    if (next === undefined) return;
    const key = sealing.open(next.sealedKey, authorityKeyContext(NEXT));
    const sealedKey = sealing.close(key, authorityKeyContext(IN_FORCE));
    const dropped = await store.drop(inForce.certificate, { ...next, id: IN_FORCE, sealedKey, signsSince: undefined });
    if (dropped) log.info({ former: digestOf(inForce.certificate) }, "dropped the platform's former authority");
  }

  async function checkBegin(): Promise<void> {
    const versions = await store.otherVersions(VERSION);
    if (versions.length > 0)
      throw new AppError(
        "failed_precondition",
        `an orchestrator of version ${versions.join(", ")} uses the database: bring all of them to ${VERSION} first`,
      );
    const unable = unableMachines(await machines(), now());
    if (unable.length > 0)
      throw new AppError(
        "failed_precondition",
        `${unable.map(({ kind, id }) => `${kind} '${id}'`).join(", ")} cannot follow: upgrade and start the program there, or remove the machine`,
      );
    const [token, ...more] = await store.unusedTokens();
    if (token === undefined) return;
    const others = more.length === 0 ? "" : ` and ${more.length} more`;
    throw new AppError(
      "conflict",
      `join token ${token.id}${others} would be of no use: use or revoke it, or wait until ${iso(token.expiresAt)}`,
    );
  }

  return {
    async round() {
      const known = await authorities.refresh();
      const replacement = replacementOf(known);
      if (replacement === undefined) return;
      const step = await stepOf(replacement);
      if (step.do === "sign") {
        await store.sign();
        log.info({ authority: replacement.next }, "the platform's new authority signs from now on");
      }
      if (step.do === "drop") await drop(known);
      if (step.do !== undefined) await authorities.refresh();
    },

    async state() {
      const known = await authorities.refresh();
      const replacement = replacementOf(known);
      const digest = known.signer.digest;
      if (replacement === undefined)
        return { state: "single", digest, former: null, next: null, begunAt: null, waitsFor: [] };
      const { former, next, begunAt, signsSince } = replacement;
      const { waits } = await stepOf(replacement);
      return {
        state: signsSince === undefined ? "trusting" : "signing",
        digest,
        former,
        next,
        begunAt: iso(begunAt),
        waitsFor: waits.map((wait) => ({ ...wait })),
      };
    },

    async begin() {
      if ((await authorities.refresh()).next !== undefined) return;
      await checkBegin();
      await store.add(await newAuthority(NEXT, { sealing, now }));
      const { next } = await authorities.refresh();
      if (next !== undefined)
        log.info(
          { authority: digestOf(next.certificate) },
          "a new authority of the platform is trusted beside the present one",
        );
    },
  };
}

/** @param replacing undefined: the platform has no port for nodes */
export function createAuthorityRotationHandlers(
  replacing: Replacing | undefined,
): Handlers<typeof authorityRotationApi> {
  const known = () => {
    if (replacing !== undefined) return replacing;
    throw new AppError(
      "failed_precondition",
      "this platform has no port for other machines, and so no authority: there is nothing to replace",
    );
  };
  return {
    readAuthorityRotation: () => known().state(),
    async replaceAuthority() {
      await known().begin();
      return known().state();
    },
  };
}

function replacementOf({ inForce, next }: Known): Replacement | undefined {
  if (next === undefined) return undefined;
  return {
    former: digestOf(inForce.certificate),
    next: digestOf(next.certificate),
    begunAt: next.createdAt,
    signsSince: next.signsSince,
  };
}
