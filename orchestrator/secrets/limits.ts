/** Limits of secrets in bytes, which the schemas, counting characters, cannot express. Messages never repeat a value. Pure. */

import { AppError } from "../../shared/http/errors.ts";

const MOST_VALUE_BYTES = 65_536;
const MOST_METADATA_BYTES = 8_192;
const MOST_METADATA_KEY_BYTES = 128;
const MOST_METADATA_VALUE_BYTES = 1_024;

/** @throws {AppError} bad_request */
export function checkValue(value: string): void {
  if (Buffer.byteLength(value) > MOST_VALUE_BYTES) refuse("value", `must have at most ${MOST_VALUE_BYTES} bytes`);
  checkText("value", value);
}

/** @throws {AppError} bad_request */
export function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  let total = 0;
  for (const [key, value] of Object.entries(metadata)) {
    const [keyBytes, valueBytes] = [Buffer.byteLength(key), Buffer.byteLength(value)];
    if (keyBytes > MOST_METADATA_KEY_BYTES) {
      refuse("metadata", `has a key of more than ${MOST_METADATA_KEY_BYTES} bytes`);
    }
    if (valueBytes > MOST_METADATA_VALUE_BYTES) {
      refuse("metadata", `has a value of more than ${MOST_METADATA_VALUE_BYTES} bytes`);
    }
    checkText("metadata", key);
    checkText("metadata", value);
    total += keyBytes + valueBytes;
  }
  if (total > MOST_METADATA_BYTES) {
    refuse("metadata", `must have at most ${MOST_METADATA_BYTES} bytes, keys and values together`);
  }
}

/** Half of a surrogate pair has no UTF-8: it would come back as another character. */
function checkText(field: string, text: string): void {
  if (/\p{Surrogate}/u.test(text)) refuse(field, "has half of a surrogate pair");
}

function refuse(field: string, fault: string): never {
  throw new AppError("bad_request", `body field '${field}' ${fault}`);
}
