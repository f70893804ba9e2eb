/** Converts each kind of credentials to what Docker sends to a registry. Exists only during the pull. */

import type { RegistryAccess } from "../../../shared/agent-api/build-shapes.ts";
import type { RegistryLogin } from "../../containers/containers.ts";
import { type EcrOptions, ecrPassword } from "./ecr.ts";

export type Login = (access: RegistryAccess, registry: string, signal: AbortSignal) => Promise<RegistryLogin>;

export function registryLogin(options: EcrOptions): Login {
  return async (access, registry, signal) => {
    switch (access.type) {
      case "registry":
        return { username: access.username, password: access.password, registry };
      case "gcp":
        return { username: "_json_key", password: access.serviceAccountJson, registry };
      case "aws": {
        const { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsRegion: region } = access;
        return { ...(await ecrPassword({ accessKeyId, secretAccessKey, region }, options, signal)), registry };
      }
    }
  };
}
