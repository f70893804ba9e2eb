/** The fields that the dashboard reads of builds, templates and tags, and their types. */

import { isUuid } from "../../../../shared/ids.ts";

/** Whether a value is of the type that the dashboard reads. */
export type Is = (value: unknown) => boolean;

export const text: Is = (value) => typeof value === "string" && value !== "";
export const uuid: Is = (value) => typeof value === "string" && isUuid(value);
export const time: Is = (value) => typeof value === "string" && new Date(value).toISOString() === value;
export const whole: Is = (value) => Number.isInteger(value);
export const yesOrNo: Is = (value) => typeof value === "boolean";
export const nothing: Is = (value) => value === null;
export const texts: Is = (value) => Array.isArray(value) && value.every(text);
export const orNull =
  (is: Is): Is =>
  (value) =>
    value === null || is(value);
export const oneOf =
  (...words: readonly string[]): Is =>
  (value) =>
    words.includes(value as string);
const has =
  (fields: Readonly<Record<string, Is>>): Is =>
  (value) =>
    wrongIn(fields, value).length === 0;
export const every =
  (fields: Readonly<Record<string, Is>>): Is =>
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every(has(fields));

/** Names of fields that are missing or of another type. */
export function wrongIn(fields: Readonly<Record<string, Is>>, value: unknown): string[] {
  const object = (value ?? {}) as Record<string, unknown>;
  return Object.entries(fields).flatMap(([name, is]) => (is(object[name]) ? [] : [name]));
}

export const buildState = {
  status: oneOf("building", "failed", "success"),
  finishedAt: orNull(time),
  statusMessage: orNull(text),
};
export const listedBuild = {
  id: uuid,
  template: text,
  templateId: text,
  ...buildState,
  createdAt: time,
  cpuCount: whole,
  memoryMB: whole,
  diskSizeMB: orNull(whole),
  envdVersion: orNull(text),
};
export const template = {
  templateID: text,
  buildID: uuid,
  public: yesOrNo,
  aliases: texts,
  names: texts,
  createdAt: time,
  updatedAt: time,
  lastSpawnedAt: orNull(time),
  spawnCount: whole,
  buildCount: whole,
  diskSizeMB: orNull(whole),
  envdVersion: orNull(text),
};
export const assignment = {
  assignmentId: uuid,
  buildId: uuid,
  assignedAt: time,
  buildCreatedAt: time,
  buildFinishedAt: orNull(time),
};
