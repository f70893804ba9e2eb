/** Reads an address or a CIDR range as people and programs write it: the only reader of ranges from outside. Pure. */

import { isIP } from "node:net";
import IPCIDR from "ip-cidr";

interface Cidr {
  readonly family: 4 | 6;
  /** As written; bits behind the prefix may be set. */
  readonly address: string;
  /** 32 or 128 for a single address. */
  readonly bits: number;
}

/**
 * Undefined for text that is neither. Stricter than the library, which reads `/08` as 8 where others read an octal number,
 * and accepts zones (`%eth0`), which have a meaning on one machine only.
 */
export function readCidr(text: string): Cidr | undefined {
  const [address = "", bits, ...rest] = text.split("/");
  const family = isIP(address);
  if ((family !== 4 && family !== 6) || address.includes("%") || rest.length > 0) return undefined;
  if (bits === undefined) return { family, address, bits: family === 4 ? 32 : 128 };
  if (!/^(0|[1-9]\d{0,2})$/.test(bits) || !IPCIDR.isValidCIDR(text)) return undefined;
  return { family, address, bits: Number(bits) };
}
