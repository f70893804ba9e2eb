/** Templates for tests, built with the published SDK on the running platform, and removed after the test. */

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type BuildInfo, Template, type TemplateClass } from "e2b";
import { onTestFinished } from "vitest";
import { api, type Platform } from "./platform.ts";

export const SIZE = { cpuCount: 1, memoryMB: 512 } as const;

export interface Built extends BuildInfo {
  /** The log's lines without their times. */
  readonly lines: readonly string[];
}

/** Builds a template and removes it after the test; its sandboxes are gone by then. */
export async function buildTemplate(platform: Platform, name: string, template: TemplateClass): Promise<Built> {
  const lines: string[] = [];
  // The removal uses the name, because a failed build leaves a template too.
  removeAfterwards(platform, name.replace(/:.*/, ""));
  const onBuildLogs = ({ message }: { message: string }) => void lines.push(message);
  const info = await Template.build(template, name, { ...SIZE, onBuildLogs });
  return { ...info, lines };
}

export function removeAfterwards(platform: Platform, idOrName: string): void {
  onTestFinished(async () => {
    await api(platform, "DELETE", `/templates/${idOrName}`);
  });
}

/** Makes a unique name. */
export const fresh = (name: string) => `${name}-${randomUUID().slice(0, 8)}`;

/** Makes a directory with these files, by relative path, for COPY steps. */
export async function contextOf(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-template-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  return directory;
}
