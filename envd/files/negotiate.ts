/** Pure: chooses the content encoding of a download. */

import { AppError } from "../../shared/http/errors.ts";

export type ContentEncoding = "identity" | "gzip";

/** HTTP clients list gzip by default: above this size compression costs more than it saves. */
const LARGEST_UNASKED_GZIP_BYTES = 1024 * 1024;
/** Below this size gzip's header and trailer cost more than it saves. */
const SMALLEST_UNASKED_GZIP_BYTES = 1024;

interface Offer {
  readonly coding: string;
  readonly quality: number;
}

/**
 * gzip where the client prefers it: it asks for nothing else, or ranks it above identity. Where it only lists gzip
 * among others, the size decides.
 * @throws {AppError} not_acceptable when the client refuses both
 */
export function negotiateEncoding(header: string | undefined, sizeBytes: number): ContentEncoding {
  if (header === undefined || header.trim() === "") return "identity";
  const offers = parseOffers(header);
  const gzip = quality(offers, "gzip") ?? 0;
  const said = quality(offers, "identity");
  // Identity is acceptable unless it is refused by name, or by a wildcard that does not name it.
  const identity = said ?? 1;
  if (gzip === 0 && identity === 0)
    throw new AppError("not_acceptable", "no acceptable encoding found, supported: [identity, gzip]");
  if (gzip === 0) return "identity";
  if (identity === 0) return "gzip";
  const ranked = offers.some(({ coding }) => coding === "identity");
  if (ranked) return gzip > identity ? "gzip" : "identity";
  if (offers.length === 1) return "gzip";
  return sizeBytes >= SMALLEST_UNASKED_GZIP_BYTES && sizeBytes <= LARGEST_UNASKED_GZIP_BYTES ? "gzip" : "identity";
}

function parseOffers(header: string): Offer[] {
  const offers: Offer[] = [];
  for (const part of header.split(",")) {
    const [coding = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase());
    if (coding === "") continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    const quality = weight === undefined ? 1 : Number(weight);
    offers.push({ coding: coding === "x-gzip" ? "gzip" : coding, quality: quality >= 0 && quality <= 1 ? quality : 0 });
  }
  return offers;
}

/** Undefined where the header does not name it, not even by `*`. */
function quality(offers: readonly Offer[], coding: string): number | undefined {
  const offer = offers.find((entry) => entry.coding === coding) ?? offers.find((entry) => entry.coding === "*");
  if (offer?.coding === "*" && coding === "identity" && offer.quality > 0) return undefined;
  return offer?.quality;
}
