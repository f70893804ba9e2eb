/** The parts of a DNS message that the forwarder needs (RFC 1035 §4.1.1). Pure. */

const HEADER_BYTES = 12;
const MAX_QUESTION_BYTES = 1_232;

/** A query with exactly one question: real clients send no other. */
export function isQuestion(message: Buffer): boolean {
  if (message.length < HEADER_BYTES + 5 || message.length > MAX_QUESTION_BYTES) return false;
  const flags = message.readUInt16BE(2);
  const isResponse = (flags & 0x8000) !== 0;
  const operation = (flags >> 11) & 0xf;
  return !isResponse && operation === 0 && message.readUInt16BE(4) === 1;
}

/** The same question under another id, so that the sandbox cannot guess what the resolver is asked. */
export function withId(message: Buffer, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}

/** The answer "server failure" to that question, because programs wait ten seconds for an answer that does not come. */
export function failure(question: Buffer): Buffer {
  const end = questionEnd(question) ?? HEADER_BYTES;
  const reply = Buffer.from(question.subarray(0, end));
  // Response, recursion as it was asked for and available, SERVFAIL; of the sections only the question.
  reply.writeUInt16BE(0x8082 | (question.readUInt16BE(2) & 0x0100), 2);
  reply.writeUInt16BE(end === HEADER_BYTES ? 0 : 1, 4);
  reply.fill(0, 6, HEADER_BYTES);
  return reply;
}

/** Whether `reply` is a response with that id and the same question. */
export function answers(reply: Buffer, question: Buffer, id: number): boolean {
  if (reply.length < HEADER_BYTES || reply.readUInt16BE(0) !== id || (reply.readUInt16BE(2) & 0x8000) === 0)
    return false;
  if (reply.readUInt16BE(4) !== 1) return reply.readUInt16BE(4) === 0;
  const end = questionEnd(question);
  return end !== undefined && same(reply, question, end);
}

function questionEnd(message: Buffer): number | undefined {
  let at = HEADER_BYTES;
  while (at < message.length) {
    const length = message[at] ?? 0;
    if (length === 0) return at + 5 <= message.length ? at + 5 : undefined;
    if (length > 63) return undefined;
    at += length + 1;
  }
  return undefined;
}

// Names are compared without regard to case: resolvers may answer in another one.
function same(a: Buffer, b: Buffer, end: number): boolean {
  if (a.length < end) return false;
  const lower = (message: Buffer) => message.subarray(HEADER_BYTES, end).toString("latin1").toLowerCase();
  return lower(a) === lower(b);
}
