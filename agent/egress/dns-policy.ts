/**
 * What a sandbox is told when it asks for a name. A question is a message to whoever serves the zone, and so is every
 * bit of it that reaches them: where only listed names may be asked for, a question of our own is asked instead.
 */

import { decideName } from "../../shared/policy/decide.ts";
import { type EgressPolicy, onlyListedNames } from "../../shared/policy/egress-policy.ts";
import { hostName } from "../../shared/policy/names.ts";
import { addressNumber, alwaysDenied } from "../../shared/policy/ranges.ts";
import { CODE, type Question, respond, respondAddresses, respondAlias, TYPE } from "./dns-question.ts";
import type { Names } from "./names.ts";

/** Who asks, found by the source address of the question. */
export interface Asker {
  readonly policy: EgressPolicy;
  /** Takes one of the questions it may ask in a while. */
  mayAsk(): boolean;
  /** Something was asked for that is not answered, for the log of decisions. */
  refused(name: string, rule: string): void;
}

export interface Answering {
  readonly names: Names;
  /** Asks the node's resolvers the question as it is. */
  readonly forward: (message: Buffer) => Promise<Buffer>;
}

/** HTTPS and SVCB records hold keys that hide the name of a connection (ECH) and addresses that bypass A records. */
const HINTS: readonly number[] = [TYPE.HTTPS, TYPE.SVCB, TYPE.ANY];
/** Whole zones. */
const TRANSFERS: readonly number[] = [TYPE.AXFR, TYPE.IXFR];

export async function answer(message: Buffer, question: Question, asker: Asker, answering: Answering): Promise<Buffer> {
  const { type } = question;
  if (!question.internet || TRANSFERS.includes(type)) return respond(message, question, CODE.refused);
  if (onlyListedNames(asker.policy)) return answerListed(message, question, asker, answering);
  return HINTS.includes(type) ? respond(message, question, CODE.ok) : answering.forward(message);
}

async function answerListed(message: Buffer, question: Question, asker: Asker, { names }: Answering): Promise<Buffer> {
  const { type } = question;
  const name = question.name === undefined ? undefined : hostName(question.name);
  const decision = name === undefined ? undefined : decideName(name, asker.policy);
  if (name === undefined || decision?.verdict !== "allow") {
    asker.refused(name ?? "", decision?.rule ?? "always name");
    return respond(message, question, CODE.refused);
  }
  // There is no IPv6 in a sandbox.
  if (HINTS.includes(type) || type === TYPE.AAAA) return respond(message, question, CODE.ok);
  if (type === TYPE.CNAME) {
    const { code, alias, ttl } = await names.alias(name);
    return alias === undefined ? respond(message, question, code) : respondAlias(message, question, { alias, ttl });
  }
  if (type !== TYPE.A) {
    asker.refused(name, `always type ${type}`);
    return respond(message, question, CODE.refused);
  }
  const { code, addresses, ttl } = await names.addresses(name);
  const outside = addresses.filter((address) => denied(address) === undefined);
  const [inside] = addresses.flatMap((address) => denied(address) ?? []);
  if (inside !== undefined) asker.refused(name, `always ${inside}`);
  if (outside.length === 0) return respond(message, question, code);
  return respondAddresses(message, question, { addresses: outside, ttl });
}

function denied(address: string): string | undefined {
  const number = addressNumber(address);
  return number === undefined ? undefined : alwaysDenied(number);
}
