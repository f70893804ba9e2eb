/** Tokens for the content of one volume: signed, so that nothing is stored, and each read of a volume makes another one. */

import { createHmac } from "node:crypto";
import { AppError } from "../../shared/http/errors.ts";
import { newUuid } from "../../shared/ids.ts";
import { readOwnToken, signOwnToken } from "../identity/own-tokens.ts";

const ISSUER = "svc";
const AUDIENCE = "svc-volume-content";
/** As long as a program may work with one `Volume` object: SDKs do not renew it. */
const LIFETIME_S = 24 * 3600;

export interface VolumeTokens {
  sign(volume: { readonly id: string; readonly projectId: string }): Promise<string>;
  /** The volume and the project of the token. @throws {AppError} unauthorized */
  read(token: string): Promise<{ readonly id: string; readonly projectId: string }>;
}

/** @param seeds the first one signs; tokens of the others stay valid */
export function createVolumeTokens(seeds: readonly string[], now: () => number): VolumeTokens {
  const keys = seeds.map((seed) => createHmac("sha256", seed).update("volume content").digest());
  const [key = Buffer.alloc(0)] = keys;
  return {
    sign: ({ id, projectId }) => {
      const at = Math.floor(now() / 1000);
      return signOwnToken(key, {
        issuer: ISSUER,
        audience: AUDIENCE,
        subject: projectId,
        id: newUuid(),
        issuedAtS: at,
        expiresAtS: at + LIFETIME_S,
        more: { volid: id },
      });
    },
    async read(token) {
      const expected = { issuer: ISSUER, audience: AUDIENCE, nowMs: now() };
      let cause: unknown;
      for (const each of keys) {
        try {
          const { sub, volid } = await readOwnToken(each, token, expected);
          if (typeof sub === "string" && typeof volid === "string") return { id: volid, projectId: sub };
        } catch (error) {
          cause ??= error;
        }
      }
      throw new AppError("unauthorized", "The volume's token is invalid or has expired: read the volume again", {
        cause,
      });
    },
  };
}
