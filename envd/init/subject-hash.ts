/** The name under which OpenSSL looks for a certificate in a directory (`openssl x509 -subject_hash`). Pure. */

import { lateCrypto } from "../runtime/late-builtins.ts";

const SEQUENCE = 0x30;
const VERSION = 0xa0;
const UTF8 = 0x0c;
/** Texts whose bytes are UTF-8 as they are: UTF8String, PrintableString, IA5String. */
const TEXTS: ReadonlySet<number> = new Set([UTF8, 0x13, 0x16]);

interface Element {
  readonly tag: number;
  readonly content: Buffer;
  /** All bytes of the element, tag and length included. */
  readonly whole: Buffer;
}

/** Eight hexadecimal digits; undefined when the text is not a certificate. */
export function subjectHash(pem: string): string | undefined {
  const base64 = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/.exec(pem)?.[1] ?? "";
  try {
    const [certificate] = elements(Buffer.from(base64, "base64"));
    const [signed] = elements(certificate?.content ?? Buffer.alloc(0));
    const fields = elements(signed?.content ?? Buffer.alloc(0));
    // serial, algorithm, issuer, validity, subject
    const subject = fields[fields[0]?.tag === VERSION ? 5 : 4];
    if (subject?.tag !== SEQUENCE) return undefined;
    const canonical = Buffer.concat(elements(subject.content).map(canonicalSet));
    const digest = lateCrypto().createHash("sha1").update(canonical).digest();
    return digest.readUInt32LE(0).toString(16).padStart(8, "0");
  } catch {
    return undefined;
  }
}

// OpenSSL hashes names in the form in which it compares them: in lower case, with one space for many.
function canonicalSet(set: Element): Buffer {
  return encode(
    set.tag,
    elements(set.content).map(({ tag, content }) => {
      const [type, value] = elements(content);
      if (type === undefined || value === undefined) throw new Error("no attribute");
      return encode(tag, [
        type.whole,
        TEXTS.has(value.tag) ? encode(UTF8, [canonicalText(value.content)]) : value.whole,
      ]);
    }),
  );
}

function canonicalText(content: Buffer): Buffer {
  const text = content
    .toString("utf8")
    .trim()
    .replaceAll(/[ \t\n\r\f\v]+/g, " ");
  return Buffer.from(text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()));
}

function elements(bytes: Buffer): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const short = bytes.readUInt8(at + 1);
    const longer = short < 0x80 ? 0 : short - 0x80;
    const start = at + 2 + longer;
    const end = start + (longer === 0 ? short : bytes.readUIntBE(at + 2, longer));
    if (end > bytes.length) throw new Error("cut off");
    found.push({ tag: bytes.readUInt8(at), content: bytes.subarray(start, end), whole: bytes.subarray(at, end) });
    at = end;
  }
  return found;
}

function encode(tag: number, parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  if (content.length > 0xff) throw new Error("a name this long is not ours");
  const length = content.length < 0x80 ? [content.length] : [0x81, content.length];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
