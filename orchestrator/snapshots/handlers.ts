/** Handlers that make snapshots from running sandboxes and list them; `templates/changes.ts` deletes them. */

import type { snapshotApi } from "../../shared/api/snapshots.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { type Place, page } from "../forms/pagination.ts";
import { iso } from "../forms/time.ts";
import { checkedId } from "../lifecycle/not-found.ts";
import type { Checkpointing } from "../lifecycle/snapshots/checkpoint.ts";
import { placeOf as whereabouts } from "../lifecycle/whereabouts.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { ListedSnapshot } from "../store/snapshots.ts";
import { totalBytes } from "../store/storage/stored-bytes.ts";
import type { Store } from "../store/store.ts";
import type { Template } from "../store/templates/record.ts";
import type { TemplateNames } from "../templates/names.ts";
import {
  DEFAULT_TAG,
  parseTemplateReference,
  possibleTemplateReference,
  type TemplateReference,
} from "../templates/reference.ts";
import { ownNamespace } from "../templates/request.ts";

export interface SnapshotsDeps {
  readonly store: Store;
  readonly nodes: Pick<Nodes, "get">;
  readonly names: TemplateNames;
  readonly checkpointing: Checkpointing;
}

export function createSnapshotHandlers(deps: SnapshotsDeps): Handlers<typeof snapshotApi, Project> {
  const { store } = deps;
  return {
    async createSnapshot({ params, body }, { caller }) {
      const name = body.name === undefined ? undefined : ownName(caller, body.name);
      const { build } = await deps.checkpointing.checkpoint(caller, checkedId(params.sandboxID), {
        kind: "snapshot",
        memory: body.memory ?? true,
        done: "snapshotted",
        same: "refuse",
        template: async () => {
          const tag = name?.tag ?? DEFAULT_TAG;
          const named = name === undefined ? undefined : { namespace: caller.slug, alias: name.name };
          const template = await store.snapshots.templateFor(caller.id, named);
          if (template !== undefined) return { id: template.id, tag };
          throw new AppError("bad_request", `body field 'name': '${name?.name ?? ""}' is the name of a template`);
        },
      });
      return shown({
        templateId: build.templateId,
        namespace: name === undefined ? undefined : caller.slug,
        alias: name?.name,
        tag: name?.tag ?? DEFAULT_TAG,
      });
    },

    async listSnapshots({ query }, { caller, header }) {
      const filter = {
        projectId: caller.id,
        ...(query.sandboxID === undefined ? {} : { sourceSandboxId: checkedId(query.sandboxID) }),
      };
      const name = query.name === undefined || query.name === "" ? undefined : query.name;
      const named = name === undefined ? {} : await templateFilter(caller, name);
      const found = named === undefined ? [] : await store.snapshots.list({ ...filter, ...named });
      const shownPage = page(found, { ...query, placeOf }, header);
      const inStore = await store.blobRefs.among(shownPage.map(({ build }) => build.id));
      return shownPage.map((listed) => {
        const { id: buildID, templateId: templateID, size, createdAt, sourceSandboxId: sourceSandboxID } = listed.build;
        return {
          ...shown(listed),
          templateID,
          buildID,
          createdAt: iso(createdAt),
          place: placed(listed.build, inStore),
          ...defined({ sourceSandboxID, storedBytes: size === undefined ? undefined : totalBytes(size) }),
        };
      });
    },
  };

  function placed({ id: snapshotId, nodeId, volumeMounts }: Build, inStore: ReadonlySet<string>) {
    const hasVolumes = volumeMounts.length > 0;
    const stored = { kind: "snapshot", snapshotId, nodeId, inStore: inStore.has(snapshotId), hasVolumes } as const;
    return whereabouts(stored, deps.nodes.get(nodeId ?? ""));
  }

  /** Undefined: the project has no snapshot of that name, or none can have it. */
  async function templateFilter(project: Project, text: string) {
    const reference = possibleTemplateReference(text);
    const template = reference === undefined ? undefined : await ownSnapshot(project, reference);
    if (reference === undefined || template === undefined) return undefined;
    return { templateId: template.id, ...(text.includes(":") ? { tag: reference.tag } : {}) };
  }

  async function ownSnapshot(project: Project, reference: TemplateReference): Promise<Template | undefined> {
    const template = await deps.names.find(project, reference);
    return template?.kind === "snapshot" && template.projectId === project.id ? template : undefined;
  }
}

/** Ids have equal length, so this sorts by id and then by tag. */
function placeOf({ build, tag }: ListedSnapshot): Place {
  return { at: build.createdAt, name: `${build.id}:${tag}` };
}

/** A write must name the caller's own namespace, or none. */
function ownName(project: Project, text: string): TemplateReference {
  const reference = parseTemplateReference(text);
  ownNamespace(reference, project.slug, "name");
  return reference;
}

/** `<slug>/<alias>:<tag>`, or `<template id>:<tag>` for one without a name. */
function shown({ templateId, namespace, alias, tag }: Omit<ListedSnapshot, "build">) {
  if (alias === undefined) return { snapshotID: `${templateId}:${tag}`, names: [] };
  const name = `${namespace ?? ""}/${alias}`;
  return { snapshotID: `${name}:${tag}`, names: [name] };
}
