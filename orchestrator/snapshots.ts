/** Handlers of snapshots: made from running sandboxes, listed, deleted through the templates' route. */

import type { snapshotApi } from "../shared/api/snapshots.ts";
import { templateChangeApi } from "../shared/api/templates.ts";
import type { Handlers } from "../shared/contract.ts";
import { AppError } from "../shared/errors.ts";
import type { Capturing } from "./capturing.ts";
import { notYet } from "./later.ts";
import { checkedId } from "./not-found.ts";
import { page } from "./pages.ts";
import type { SnapshotRemover } from "./snapshots-on-nodes.ts";
import type { Project } from "./store/projects.ts";
import type { ListedSnapshot } from "./store/snapshots.ts";
import type { Store } from "./store/store.ts";
import type { Template } from "./store/templates.ts";
import type { TemplateNames } from "./template-names.ts";
import { DEFAULT_TAG, parseTemplateReference, type TemplateReference } from "./template-reference.ts";

export interface SnapshotsDeps {
  readonly store: Store;
  readonly names: TemplateNames;
  readonly capturing: Capturing;
  readonly snapshots: SnapshotRemover;
}

export function createSnapshotHandlers(deps: SnapshotsDeps): Handlers<typeof snapshotApi, Project> {
  const { store } = deps;
  return {
    async createSnapshot({ params, body }, { caller }) {
      const name = body.name === undefined ? undefined : ownName(caller, body.name);
      const { build } = await deps.capturing.capture(caller, checkedId(params.sandboxID), {
        kind: "snapshot",
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
      return page(found, { ...query, idOf: ({ build, tag }) => `${build.id}:${tag}` }, header).map(shown);
    },
  };

  /** Undefined: nothing of that name is the project's. */
  async function templateFilter(project: Project, text: string) {
    const reference = parseTemplateReference(text);
    const template = await ownSnapshot(project, reference);
    if (template === undefined) return undefined;
    return { templateId: template.id, ...(text.includes(":") ? { tag: reference.tag } : {}) };
  }

  async function ownSnapshot(project: Project, reference: TemplateReference): Promise<Template | undefined> {
    const template = await deps.names.find(project, reference);
    return template?.kind === "snapshot" && template.projectId === project.id ? template : undefined;
  }
}

export function createTemplateChangeHandlers(deps: SnapshotsDeps): Handlers<typeof templateChangeApi, Project> {
  const { store } = deps;
  const later = notYet(templateChangeApi);

  /** Without a tag the snapshot with all its tags; with one that tag, and what only it named. */
  async function remove(template: Template, tag: string | undefined, reference: string): Promise<void> {
    const tagged = tag === undefined ? undefined : await store.templates.tagged(template.id, tag);
    if (tag !== undefined && tagged === undefined) throw missing(reference);
    if (await store.sleepers.usesTemplate(template.id, tagged?.id)) {
      throw new AppError("bad_request", `snapshot '${reference}' is in use: sandboxes started from it are still there`);
    }
    if (tag === undefined) {
      for (const build of await store.snapshots.dropTemplate(template.id)) {
        if (build.nodeId !== undefined) deps.snapshots.removeSoon(build.nodeId, build.id);
      }
      return;
    }
    const untagged = await store.snapshots.untag(template.id, tag);
    if (untagged?.unnamed === true) await deps.capturing.discard(untagged.build);
  }

  return {
    ...later,
    async deleteTemplate(input, context) {
      const { caller } = context;
      const text = input.params.templateID;
      const reference = parseTemplateReference(text);
      const template = await deps.names.find(caller, reference);
      // Whoever may only use it learns no more than that there is nothing here to delete.
      if (template?.projectId !== caller.id) throw missing(text);
      if (template.kind === "template") return later.deleteTemplate(input, context);
      await remove(template, text.includes(":") ? reference.tag : undefined, text);
    },
  };
}

/** On write a namespace must be the caller's own. */
function ownName(project: Project, text: string): TemplateReference {
  const reference = parseTemplateReference(text);
  if (reference.namespace !== undefined && reference.namespace !== project.slug) {
    throw new AppError("bad_request", `body field 'name': namespace '${reference.namespace}' is not '${project.slug}'`);
  }
  return reference;
}

/** `<slug>/<alias>:<tag>`, or `<template id>:<tag>` for one without a name (wire-contract.md §5.3). */
function shown({ templateId, namespace, alias, tag }: Omit<ListedSnapshot, "build">) {
  if (alias === undefined) return { snapshotID: `${templateId}:${tag}`, names: [] };
  const name = `${namespace ?? ""}/${alias}`;
  return { snapshotID: `${name}:${tag}`, names: [name] };
}

function missing(reference: string): AppError {
  return new AppError("template_not_found", `template '${reference}' not found`);
}
