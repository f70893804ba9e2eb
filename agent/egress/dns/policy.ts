/**
 * Decides the answer to a sandbox's DNS question. Every bit of a question is a message to the owner of the zone, so where
 * only listed names may be resolved, the resolver sends a question that it writes itself.
 */

import { decideName } from "../../../shared/policy/decide.ts";
import { type EgressPolicy, onlyListedNames } from "../../../shared/policy/egress-policy.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { addressNumber, alwaysDenied } from "../../../shared/policy/ranges.ts";
import type { NoAnswer, Reply } from "./ask.ts";
import type { Names } from "./names.ts";
import {
  CODE,
  codeName,
  codeOfReply,
  type Question,
  respond,
  respondAddresses,
  respondAlias,
  TYPE,
} from "./question.ts";

/** The asking sandbox, found by the source address of the question. */
export interface Asker {
  readonly policy: EgressPolicy;
  /** Counts one more question; false when the sandbox has used up its rate. */
  mayAsk(): boolean;
  /** Records a question that had no place among those under way. */
  tooMany(): void;
  /** Records a question that is not answered, in the log of decisions. */
  refused(asked: AskedName, rule: string): void;
  /** Records a question that was allowed and has no answer: a response code, or why no resolver answered. */
  failed(asked: AskedName, reason: string): void;
}

export interface AskedName {
  /** In lower case; empty where its bytes are not valid in a name. */
  readonly name: string;
  /** The number of the type of records. */
  readonly type: number;
}

export interface Answering {
  readonly names: Names;
  /** Sends the question unchanged to the node's resolvers. */
  readonly forward: (message: Buffer) => Promise<Reply>;
}

/** The types that a connection needs. Others only carry data, TXT above all, or weaken decisions by name. */
const ANSWERED: readonly number[] = [TYPE.A, TYPE.AAAA, TYPE.CNAME];
/**
 * What else programs ask before they connect, such as drivers with `mongodb+srv://`: host names, which they then look up. Where
 * any name may be asked for, these tell a zone's owner no more than a look-up of an address.
 */
const ANSWERED_OF_ANY_NAME: readonly number[] = [...ANSWERED, TYPE.SRV, TYPE.MX];
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
  const asked = { name: (question.name ?? "").toLowerCase(), type };
  if (!ANSWERED_OF_ANY_NAME.includes(type)) return withoutRecords(message, question, asker, asked);
  const { message: reply, noAnswer } = await answering.forward(message);
  noteFailure(asker, asked, { code: codeOfReply(reply), noAnswer });
  return reply;
}

function noteFailure(
  asker: Asker,
  asked: AskedName,
  { code, noAnswer }: { readonly code: number; readonly noAnswer?: NoAnswer | undefined },
): void {
  if (noAnswer !== undefined || code !== CODE.ok) asker.failed(asked, noAnswer ?? codeName(code));
}

/** Answers "the name has no records of that type": programs continue, and do not ask again. */
function withoutRecords(message: Buffer, question: Question, asker: Asker, asked: AskedName): Buffer {
  if (!HINTS.includes(question.type)) asker.refused(asked, `always type ${question.type}`);
  return respond(message, question, CODE.ok);
}

async function answerListed(message: Buffer, question: Question, asker: Asker, { names }: Answering): Promise<Buffer> {
  const { type } = question;
  const name = question.name === undefined ? undefined : hostName(question.name);
  const decision = name === undefined ? undefined : decideName(name, asker.policy);
  if (name === undefined || decision?.verdict !== "allow") {
    asker.refused({ name: name ?? "", type }, decision?.rule ?? "always name");
    return respond(message, question, CODE.refused);
  }
  const asked = { name, type };
  if (!ANSWERED.includes(type)) return withoutRecords(message, question, asker, asked);
  // There is no IPv6 in a sandbox.
  if (type === TYPE.AAAA) return respond(message, question, CODE.ok);
  if (type === TYPE.CNAME) {
    const { code, alias, ttl, noAnswer } = await names.alias(name);
    noteFailure(asker, asked, { code, noAnswer });
    return alias === undefined ? respond(message, question, code) : respondAlias(message, question, { alias, ttl });
  }
  const { code, addresses, ttl, noAnswer } = await names.addresses(name);
  noteFailure(asker, asked, { code, noAnswer });
  const outside = addresses.filter((address) => denied(address) === undefined);
  const [inside] = addresses.flatMap((address) => denied(address) ?? []);
  if (inside !== undefined) asker.refused(asked, `always ${inside}`);
  if (outside.length === 0) return respond(message, question, code);
  return respondAddresses(message, question, { addresses: outside, ttl });
}

function denied(address: string): string | undefined {
  const number = addressNumber(address);
  return number === undefined ? undefined : alwaysDenied(number);
}
