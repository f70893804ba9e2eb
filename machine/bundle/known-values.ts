/** Every secret that the files of this machine's platform hold, so that none of them leaves it, whatever it is called there. */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Instance, textOf } from "../base/instance.ts";
import { isSecretName } from "./redact.ts";

export function knownValues(instance: Instance): readonly string[] {
  const { config, state } = instance.places;
  const settings = (["orchestrator", "agent", "edge"] as const).flatMap((program) =>
    Object.entries(instance.environment(program)),
  );
  const ofSettings = settings
    .filter(([name]) => isSecretName(name))
    .flatMap(([, value]) => [value, ...value.split(",")]);
  const files = [
    // The operator's own key of TLS is where a setting says.
    ...settings.filter(([name]) => name.endsWith("_FILE") && isSecretName(name.slice(0, -5))).map(([, path]) => path),
    ...[config, join(config, "site")].flatMap((folder) =>
      namesIn(folder)
        .filter((name) => /token|key|secret/i.test(name))
        .map((name) => join(folder, name)),
    ),
    join(state, "agent/membership/membership.json"),
    join(state, "edge/membership/membership.json"),
  ];
  return [...ofSettings, ...files.flatMap((path) => wordsOf(textOf(path) ?? ""))].filter((value) => value !== "");
}

/** Lines of keys have a name first or a time behind; JSON has its values. A certificate is no secret. */
function wordsOf(text: string): readonly string[] {
  return text.split(/[\s"',]+/).filter((word) => word.length >= 16 && !/^\d{4}-\d\d-/.test(word));
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
