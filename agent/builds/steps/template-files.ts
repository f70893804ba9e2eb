/**
 * Fetches archives of COPY steps from the orchestrator that got the upload: each is asked. Clients made them, so their content is not
 * trusted.
 */

import type { Readable } from "node:stream";
import { Agent, request } from "undici";
import { connectorFor } from "../../../shared/http/connections/meeting-connector.ts";
import { AppError, isError } from "../../../shared/http/errors.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import { isAway, type Orchestrators } from "../../joining/orchestrators.ts";
import { authorization, type Peering } from "../../joining/peering.ts";

const ANSWER_LIMIT_MS = 30_000;

export type TemplateFiles = (templateId: string, hash: string, signal: AbortSignal) => Promise<Readable>;

export function templateFiles(
  { orchestrators, peering }: { readonly orchestrators: Orchestrators; readonly peering: Peering },
  teardown: Teardown,
): TemplateFiles {
  const { meeting } = peering;
  const dispatcher = meeting === undefined ? undefined : new Agent({ connect: connectorFor(meeting) });
  if (dispatcher !== undefined) teardown.add("connection for files of templates", () => dispatcher.destroy());
  async function fetchFrom(orchestratorUrl: string, path: string, signal: AbortSignal): Promise<Readable> {
    try {
      const { statusCode, body } = await request(`${orchestratorUrl}${path}`, {
        headers: authorization(peering),
        ...(dispatcher === undefined ? {} : { dispatcher }),
        headersTimeout: ANSWER_LIMIT_MS,
        signal,
      });
      if (statusCode === 200) return body;
      body.destroy();
      body.on("error", () => undefined);
      if (statusCode === 404)
        throw new AppError(
          "bad_request",
          "the files of the step were not uploaded to an orchestrator that this node knows: build the template again with the SDK",
        );
      throw new AppError("unavailable", `the orchestrator did not send the files of the step (status ${statusCode})`);
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof AppError) throw cause;
      throw new AppError("unavailable", "the orchestrator did not send the files of the step", { cause });
    }
  }

  // The files may be on another orchestrator's disk.
  const elsewhere = (error: unknown) => isAway(error) || isError(error, "bad_request");
  return async (templateId, hash, signal) => {
    const path = `/internal/templates/${encodeURIComponent(templateId)}/files/${hash}`;
    const failures: unknown[] = [];
    const fetchNoted = async (url: string) => {
      try {
        return await fetchFrom(url, path, signal);
      } catch (error) {
        failures.push(error);
        throw error;
      }
    };
    try {
      return await orchestrators.ask(fetchNoted, elsewhere);
    } catch (cause) {
      signal.throwIfAborted();
      if (!failures.some(isAway) || failures.every(isAway)) throw cause;
      const message =
        "the files of the step are on no orchestrator that answers, and another one is away: build the template again with the SDK, which uploads them again";
      throw new AppError("unavailable", message, { cause });
    }
  };
}
