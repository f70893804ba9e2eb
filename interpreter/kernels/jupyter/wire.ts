/** Messages of the Jupyter wire protocol 5.3: six frames behind the identities, signed with HMAC-SHA256. Pure. */

import { createHmac, timingSafeEqual } from "node:crypto";

const DELIMITER = "<IDS|MSG>";

interface Header {
  readonly msg_id: string;
  readonly msg_type: string;
  /** ISO 8601. */
  readonly date: string;
}

export interface Message {
  readonly header: Header;
  /** `msg_id` of the request that this message belongs to. */
  readonly parent: string | undefined;
  /** JSON. */
  readonly content: Buffer;
}

export interface Request {
  readonly id: string;
  readonly type: string;
  readonly session: string;
  readonly content: object;
}

export function encode(key: string, { id, type, session, content }: Request): string[] {
  const header = {
    msg_id: id,
    msg_type: type,
    session,
    username: "svc",
    date: new Date().toISOString(),
    version: "5.3",
  };
  const parts = [JSON.stringify(header), "{}", "{}", JSON.stringify(content)];
  return [DELIMITER, sign(key, parts), ...parts];
}

/** Undefined for a message that is not signed with the key, or not readable. */
export function decode(key: string, frames: readonly Buffer[]): Message | undefined {
  const start = frames.findIndex((frame) => frame.length === DELIMITER.length && frame.toString() === DELIMITER);
  const signature = frames[start + 1];
  const parts = frames.slice(start + 2, start + 6);
  if (start < 0 || signature === undefined || parts.length < 4) return undefined;
  const expected = Buffer.from(sign(key, parts));
  if (expected.length !== signature.length || !timingSafeEqual(expected, signature)) return undefined;
  const [header = "", parent = "", , content = Buffer.alloc(0)] = parts;
  try {
    const read = JSON.parse(header.toString()) as Partial<Header>;
    const { msg_id = "", msg_type = "", date = "" } = read;
    const of = (JSON.parse(parent.toString()) as Partial<Header>).msg_id;
    return { header: { msg_id, msg_type, date }, parent: of, content };
  } catch {
    return undefined;
  }
}

function sign(key: string, parts: readonly (string | Buffer)[]): string {
  const hmac = createHmac("sha256", key);
  for (const part of parts) hmac.update(part);
  return hmac.digest("hex");
}
