/** What Ctrl K finds beside screens and sandboxes: every object of the project, and an operator's nodes and projects. */

import type { WebhookView } from "../../../shared/api/events/webhooks.ts";
import type { NodeDetail } from "../../../shared/api/nodes/nodes.ts";
import type { Project } from "../../../shared/api/projects/projects.ts";
import type { Secret } from "../../../shared/api/secrets.ts";
import type { TeamApiKey } from "../../../shared/api/teams.ts";
import type { Template } from "../../../shared/api/templates.ts";
import type { volumeApi } from "../../../shared/api/volumes/volumes.ts";
import { get, pages, type Reply } from "../base/client.ts";
import { projectId, session } from "../base/session.ts";
import type { Snapshot } from "../sandbox/snapshots/lineage.ts";

interface Found {
  readonly name: string;
  /** Of the screen that has it. */
  readonly path: string;
  /** The screens show this project from then on. */
  readonly project?: string;
}

/** A list that cannot be read leaves the others to be found. */
export async function loadObjects(signal: AbortSignal): Promise<readonly Found[]> {
  const lists = await Promise.allSettled([
    ...(projectId.value === undefined ? [] : ofProject(signal)),
    ...(session.value.kind === "admin" ? ofPlatform(signal) : []),
  ]);
  return [...projectsOfPerson(), ...lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []))];
}

function ofProject(signal: AbortSignal): readonly Promise<readonly Found[]>[] {
  return [
    pages<Template>("/v2/templates", signal).then((all) =>
      all.map(({ templateID, names: [name] }) => ({
        name: `Template ${name ?? templateID}`,
        path: `/templates/${templateID}`,
      })),
    ),
    pages<Snapshot>("/snapshots", signal).then((all) =>
      all.map(({ snapshotID, sourceSandboxID: of }) => ({
        name: `Snapshot ${snapshotID}`,
        path: of === undefined ? "/snapshots" : `/sandboxes/${of}/snapshots`,
      })),
    ),
    get<Reply<typeof volumeApi.listVolumes>>("/volumes", {}, signal).then((all) =>
      all.map(({ name, volumeID }) => ({ name: `Volume ${name}`, path: `/volumes/${volumeID}` })),
    ),
    pages<Secret>("/secrets", signal).then((all) =>
      all.map(({ name }) => ({ name: `Secret ${name}`, path: "/secrets" })),
    ),
    get<WebhookView[]>("/events/webhooks", {}, signal).then((all) =>
      all.map(({ name, url }) => ({ name: `Webhook ${name} ${url}`, path: "/webhooks" })),
    ),
    get<TeamApiKey[]>("/api-keys", {}, signal).then((all) =>
      all.map(({ name, mask }) => ({ name: `API key ${name} …${mask.maskedValueSuffix}`, path: "/project" })),
    ),
  ];
}

function ofPlatform(signal: AbortSignal): readonly Promise<readonly Found[]>[] {
  return [
    get<NodeDetail[]>("/nodes", {}, signal).then((all) =>
      all.map(({ id }) => ({ name: `Node ${id}`, path: "/platform" })),
    ),
    get<Project[]>("/admin/projects", {}, signal).then((all) =>
      all.flatMap(({ name, teamID }) => [
        { name: `Project ${name}`, path: "/", project: teamID },
        { name: `Project ${name}: limits, keys and state`, path: `/platform/projects/${teamID}` },
      ]),
    ),
  ];
}

function projectsOfPerson(): readonly Found[] {
  const now = session.value;
  if (now.kind !== "person") return [];
  return now.projects.map(({ id, name }) => ({ name: `Project ${name}`, path: "/", project: id }));
}
