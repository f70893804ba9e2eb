/** Reads the agent's settings, which `shared/settings/agent.ts` lists, from the environment. */

import { isPlainToAnother } from "../shared/http/plain-addresses.ts";
import { ConfigError, readConfig } from "../shared/program/config.ts";
import { AgentConfig } from "../shared/settings/agent.ts";
import { EdgeConfig } from "../shared/settings/edge.ts";
import { OrchestratorConfig } from "../shared/settings/orchestrator.ts";
import { ScriptSettings } from "../shared/settings/scripts.ts";

export { AgentConfig };

/** Settings of other programs may be in the same environment. A name that no program knows is an error. */
export function readAgentConfig(environment: NodeJS.ProcessEnv): AgentConfig {
  const config = readConfig(AgentConfig, environment, { others: [OrchestratorConfig, EdgeConfig, ScriptSettings] });
  readLabels(config.labels);
  readBlobPlace(config);
  return config;
}

/**
 * `SVC_LABELS`: `key=value,key=value`, where a value may contain `=`.
 * @throws {ConfigError} for a pair that cannot be read: without its label the node would get sandboxes that are not meant for it
 */
export function readLabels(text: string): Record<string, string> {
  const labels = new Map<string, string>();
  for (const pair of text.split(",").map((each) => each.trim())) {
    if (pair === "") continue;
    const [, key = "", value = ""] = /^([^=\s]+)\s*=\s*(.*)$/.exec(pair) ?? [];
    if (key === "") throw new ConfigError([`SVC_LABELS: '${pair}' is not key=value`]);
    if (labels.has(key)) throw new ConfigError([`SVC_LABELS: '${key}' is given twice`]);
    labels.set(key, value);
  }
  return Object.fromEntries(labels);
}

/** Where blobs are stored, as the settings have it. */
export type BlobPlace =
  | { readonly is: "directory"; readonly directory: string }
  | {
      readonly is: "s3";
      readonly at: {
        readonly endpoint: string;
        readonly bucket: string;
        readonly prefix: string;
        readonly region: string;
      };
      readonly secrets: { readonly accessKeyId: string; readonly secretAccessKey: string };
    };

type BlobStoreSettings = Pick<
  AgentConfig,
  "blobStore" | "blobStoreUrl" | "blobStoreRegion" | "blobStoreAccessKey" | "blobStoreSecret" | "blobKey"
>;

/**
 * Undefined: snapshots stay on their node.
 * @throws {ConfigError} when settings of an S3-compatible service are missing, or are there without one
 */
export function readBlobPlace(config: BlobStoreSettings): BlobPlace | undefined {
  const { blobStore, blobStoreUrl, blobStoreRegion: region, blobStoreAccessKey, blobStoreSecret, blobKey } = config;
  const [, bucket, prefix = ""] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(blobStore ?? "") ?? [];
  const given = [
    { name: "SVC_BLOB_STORE_URL", value: blobStoreUrl },
    { name: "SVC_BLOB_STORE_ACCESS_KEY", value: blobStoreAccessKey },
    { name: "SVC_BLOB_STORE_SECRET", value: blobStoreSecret },
  ];
  if (bucket === undefined) {
    const useless = given.filter(({ value }) => value !== undefined).map(({ name }) => name);
    if (useless.length > 0)
      throw new ConfigError([
        `${useless.join(", ")} is for a service of S3, and SVC_BLOB_STORE names none (s3://BUCKET)`,
      ]);
    return blobStore === undefined ? undefined : { is: "directory", directory: blobStore };
  }
  if (blobStoreUrl === undefined || blobStoreAccessKey === undefined || blobStoreSecret === undefined) {
    const missing = given.filter(({ value }) => value === undefined).map(({ name }) => name);
    throw new ConfigError(missing.map((name) => `${name} is required with SVC_BLOB_STORE ${blobStore ?? ""}`));
  }
  if (blobKey === undefined && isPlainToAnother(blobStoreUrl))
    throw new ConfigError([
      `SVC_BLOB_STORE_URL ${blobStoreUrl} would send what sandboxes hold to another machine in clear: use https://, or set SVC_BLOB_KEY`,
    ]);
  return {
    is: "s3",
    at: { endpoint: blobStoreUrl, bucket, prefix, region },
    secrets: { accessKeyId: blobStoreAccessKey, secretAccessKey: blobStoreSecret },
  };
}
