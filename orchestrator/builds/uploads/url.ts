/** Signed upload URLs for the files of a COPY step: the URL itself is the permission, for a limited time. Pure. */

import { AppError } from "../../../shared/http/errors.ts";
import { sameSecret, uploadSignature } from "../../../shared/ids.ts";

/** Lifetime of a URL: as long as clients allow one upload to take. */
const LIFE_SECONDS = 3600;

export interface UploadPlace {
  readonly templateId: string;
  readonly hash: string;
}

/** `now` in unix milliseconds. */
export function uploadUrl(origin: string, place: UploadPlace, { seed, now }: { seed: string; now: number }): string {
  const expiresAt = Math.floor(now / 1000) + LIFE_SECONDS;
  const signature = uploadSignature(seed, { ...place, expiresAt });
  const query = new URLSearchParams({ expires: String(expiresAt), signature });
  return `${origin.replace(/\/+$/, "")}/uploads/${place.templateId}/${place.hash}?${query.toString()}`;
}

/** @throws {AppError} forbidden: the signature is not ours for this path, or the URL has expired. */
export function checkUploadUrl(
  place: UploadPlace,
  query: { readonly expires?: unknown; readonly signature?: unknown },
  { seeds, now }: { seeds: readonly string[]; now: number },
): void {
  const { expires, signature } = query;
  const written = typeof expires === "string" && /^[0-9]{1,12}$/.test(expires) ? Number(expires) : undefined;
  const signed =
    written !== undefined &&
    typeof signature === "string" &&
    seeds.some((seed) => sameSecret(signature, uploadSignature(seed, { ...place, expiresAt: written })));
  if (!signed) throw new AppError("forbidden", "the upload URL was not signed by this platform: ask for another one");
  if (written * 1000 < now) throw new AppError("forbidden", "the upload URL has expired: ask for another one");
}
