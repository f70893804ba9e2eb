/**
 * Gives a machine that joins the archive of the base template's image, which `scripts/host/engine/base-image` has left on this
 * machine, so that the new one does not make its own from packages. The join token permits it, and stays unused.
 */

import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { type JoinToken, readJoinToken } from "../../shared/agent-api/joining/join-token.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";

export interface BaseImageDeps {
  /** Of the archives; undefined: this machine keeps none. */
  readonly directory: string | undefined;
  /** @throws {AppError} forbidden: the token makes no machine a node */
  readonly admits: (token: Pick<JoinToken, "id" | "secret">) => Promise<void>;
  readonly log: Log;
}

interface Asked {
  readonly Params: { readonly recipe: string };
  readonly Querystring: { readonly processor?: string };
  readonly Headers: { readonly "x-join-token"?: string };
}

/** A hash of the recipe's files, see `scripts/host/engine/base-image`. */
const RECIPE = /^[0-9a-f]{12}$/;

export function addBaseImage(server: FastifyInstance, { directory, admits, log }: BaseImageDeps): void {
  server.get<Asked>("/internal/base-image/:recipe", async ({ params: { recipe }, query, headers }, reply) => {
    const { id: tokenId, secret } = tokenIn(headers["x-join-token"]);
    await admits({ id: tokenId, secret });
    if (!RECIPE.test(recipe)) throw new AppError("bad_request", "a recipe is named by 12 hexadecimal digits");
    if (query.processor !== process.arch) {
      throw new AppError(
        "not_found",
        `the platform's base image is for ${process.arch}, not ${query.processor ?? "any"}`,
      );
    }
    const found = directory === undefined ? undefined : await opened(join(directory, `base-${recipe}.tar.gz`));
    if (found === undefined) throw new AppError("not_found", `the platform has no base image of the recipe ${recipe}`);
    log.info({ tokenId, recipe, bytes: found.bytes }, "a machine that joins takes the base image");
    return reply.type("application/gzip").header("content-length", found.bytes).send(found.stream);
  });
}

/** @throws {AppError} forbidden */
function tokenIn(text: string | undefined): JoinToken {
  try {
    return readJoinToken(text ?? "");
  } catch (cause) {
    throw new AppError("forbidden", cause instanceof RangeError ? cause.message : "no join token", { cause });
  }
}

async function opened(path: string) {
  try {
    const file = await open(path, "r");
    // Reads the open file: another recipe may remove its name a moment later.
    const { size: bytes } = await file.stat();
    return { bytes, stream: createReadStream(path, { fd: file, start: 0 }) };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
