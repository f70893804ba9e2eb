/** Handlers that delete and publish templates, and set their warm pools; snapshots are deleted through the same route. */

import type { templateChangeApi } from "../../shared/api/templates.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Checkpointing } from "../lifecycle/snapshots/checkpoint.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import type { Template } from "../store/templates/record.ts";
import { qualified } from "./handlers.ts";
import type { TemplateNames } from "./names.ts";
import { noTemplate } from "./not-found.ts";
import { DEFAULT_TAG, parseTemplateReference } from "./reference.ts";
import type { TemplateRemoval } from "./removal.ts";

export interface TemplateChangesDeps {
  readonly store: Store;
  readonly names: TemplateNames;
  readonly checkpointing: Checkpointing;
  readonly removal: TemplateRemoval;
}

export function createTemplateChangeHandlers(deps: TemplateChangesDeps): Handlers<typeof templateChangeApi, Project> {
  const { store } = deps;

  /** Without a tag, deletes the snapshot with all its tags; with a tag, the tag and the build that only it named. */
  async function removeSnapshot(template: Template, tag: string | undefined, reference: string): Promise<void> {
    const tagged = tag === undefined ? undefined : await store.templates.tagged(template.id, tag);
    if (tag !== undefined && tagged === undefined) throw noTemplate(reference);
    if (await store.pausedSandboxes.usesTemplate(template.id, tagged?.id)) {
      throw new AppError("bad_request", `snapshot '${reference}' is in use: sandboxes started from it are still there`);
    }
    if (tag === undefined) return deps.removal.removeSnapshots(template.id);
    const untagged = await store.snapshots.untag(template.id, tag);
    if (untagged?.unnamed === true) await deps.checkpointing.discard(untagged.build);
  }

  /** With another tag than the default, deletes that tag; its build stays for as long as something needs it. */
  async function removeTemplate(template: Template, tag: string, reference: string): Promise<void> {
    if (tag !== DEFAULT_TAG) {
      if ((await store.tags.remove(template.id, [tag])) !== undefined) throw noTemplate(reference);
      return;
    }
    if (await deps.removal.removeTemplate(template.id)) return;
    const why = "sandboxes started from it are still there";
    throw new AppError("bad_request", `template '${reference}' is in use: ${why}`);
  }

  async function change(
    caller: Project,
    text: string,
    { public: isPublic, warmPool }: { readonly public?: boolean; readonly warmPool?: number | null },
  ): Promise<string[]> {
    // Another project's private template answers 404; a published one is visible anyway.
    const template = await deps.names.find(caller, parseTemplateReference(text));
    if (template?.kind !== "template") throw noTemplate(text);
    if (template.projectId === undefined) throw new AppError("bad_request", `template '${text}' is the platform's own`);
    if (template.projectId !== caller.id) throw new AppError("forbidden", `template '${text}' is another project's`);
    if (isPublic !== undefined) await store.templates.setPublic(template.id, isPublic);
    if (warmPool !== undefined) await store.templates.setWarmPool(template.id, warmPool);
    return (await store.templates.aliases(template.id)).map(qualified);
  }

  return {
    async deleteTemplate({ params }, { caller }) {
      const text = params.templateID;
      const reference = parseTemplateReference(text);
      const template = await deps.names.find(caller, reference);
      // A caller who may only use the template gets "not found", as for an unknown one.
      if (template?.projectId !== caller.id) throw noTemplate(text);
      if (template.kind === "template") await removeTemplate(template, reference.tag, text);
      else await removeSnapshot(template, text.includes(":") ? reference.tag : undefined, text);
    },

    async updateTemplate({ params, body }, { caller }) {
      return { names: await change(caller, params.templateID, body) };
    },

    async updateTemplateV1({ params, body }, { caller }) {
      await change(caller, params.templateID, body);
    },
  };
}
