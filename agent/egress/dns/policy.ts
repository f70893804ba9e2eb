/**
 * Decides the answer to a sandbox's DNS question. Every bit of a question is a message to the owner of the zone, so where
 * only listed names may be resolved, the resolver sends a question that it writes itself.
 */

import { decideName } from "../../../shared/policy/decide.ts";
import { type EgressPolicy, onlyListedNames } from "../../../shared/policy/egress-policy.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { addressNumber, alwaysDenied } from "../../../shared/policy/ranges.ts";
import type { Names } from "./names.ts";
import { CODE, type Question, respond, respondAddresses, respondAlias, TYPE } from "./question.ts";

/** The asking sandbox, found by the source address of the question. */
export interface Asker {
  readonly policy: EgressPolicy;
  /** Counts one more question; false when the sandbox has used up its rate. */
  mayAsk(): boolean;
  /** Records a question that is not answered, in the log of decisions. */
  refused(name: string, rule: string): void;
}

export interface Answering {
  readonly names: Names;
  /** Sends the question unchanged to the node's resolvers. */
  readonly forward: (message: Buffer) => Promise<Buffer>;
}

/** The types that a connection needs. Others only carry data, TXT above all, or weaken decisions by name. */
const ANSWERED: readonly number[] = [TYPE.A, TYPE.AAAA, TYPE.CNAME];
/**
 * HTTPS and SVCB records hold keys that hide the name of a connection (ECH) and addresses that bypass A records.
 * Browsers ask for them before every connection, so these questions are not logged.
 */
const HINTS: readonly number[] = [TYPE.HTTPS, TYPE.SVCB, TYPE.ANY];
/** Questions for the records of a whole zone. */
const TRANSFERS: readonly number[] = [TYPE.AXFR, TYPE.IXFR];

export async function answer(message: Buffer, question: Question, asker: Asker, answering: Answering): Promise<Buffer> {
  const { type } = question;
  if (!question.internet || TRANSFERS.includes(type)) return respond(message, question, CODE.refused);
  if (onlyListedNames(asker.policy)) return answerListed(message, question, asker, answering);
  return ANSWERED.includes(type)
    ? answering.forward(message)
    : withoutRecords(message, question, asker, question.name ?? "");
}

/** Answers "the name has no records of that type" under every policy: programs continue, and do not ask again. */
function withoutRecords(message: Buffer, question: Question, asker: Asker, name: string): Buffer {
  if (!HINTS.includes(question.type)) asker.refused(name, `always type ${question.type}`);
  return respond(message, question, CODE.ok);
}

async function answerListed(message: Buffer, question: Question, asker: Asker, { names }: Answering): Promise<Buffer> {
  const { type } = question;
  const name = question.name === undefined ? undefined : hostName(question.name);
  const decision = name === undefined ? undefined : decideName(name, asker.policy);
  if (name === undefined || decision?.verdict !== "allow") {
    asker.refused(name ?? "", decision?.rule ?? "always name");
    return respond(message, question, CODE.refused);
  }
  if (!ANSWERED.includes(type)) return withoutRecords(message, question, asker, name);
  // There is no IPv6 in a sandbox.
  if (type === TYPE.AAAA) return respond(message, question, CODE.ok);
  if (type === TYPE.CNAME) {
    const { code, alias, ttl } = await names.alias(name);
    return alias === undefined ? respond(message, question, code) : respondAlias(message, question, { alias, ttl });
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
