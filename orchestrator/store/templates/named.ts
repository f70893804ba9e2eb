/** Finds the template that a build names, or makes a new one under that name. */

import { newTemplateId } from "../../../shared/ids.ts";
import { lock, locks } from "../locks.ts";
import type { Session } from "../tables.ts";
import { type TemplateRow, templateTable } from "./record.ts";

export interface TemplateName {
  readonly projectId: string;
  readonly namespace: string;
  /** An alias of the namespace, or the id of a template of the project. */
  readonly name: string;
}

export async function templateNamed(session: Session, ask: TemplateName, at: number): Promise<TemplateRow> {
  await lock(session, locks.names(ask.namespace));
  return (await named(session, ask)) ?? (await create(session, ask, at));
}

/** An alias takes precedence over an id, as in every look-up of a template. */
async function named(session: Session, { projectId, namespace, name }: TemplateName): Promise<TemplateRow | undefined> {
  const known = await session
    .selectFrom("template_aliases")
    .innerJoin("templates", "templates.id", "template_aliases.template_id")
    .selectAll("templates")
    .where("template_aliases.namespace", "=", namespace)
    .where("template_aliases.alias", "=", name)
    .executeTakeFirst();
  if (known !== undefined) return known;
  return session
    .selectFrom("templates")
    .selectAll()
    .where("id", "=", name)
    .where("project_id", "=", projectId)
    .executeTakeFirst();
}

async function create(
  session: Session,
  { projectId, namespace, name }: TemplateName,
  at: number,
): Promise<TemplateRow> {
  const row = templateTable.toRow({
    id: newTemplateId(),
    projectId,
    public: false,
    kind: "template",
    createdAt: at,
    updatedAt: at,
  });
  await session.insertInto("templates").values(row).execute();
  await session
    .insertInto("template_aliases")
    .values({ namespace, alias: name, template_id: row.id, created_at: at })
    .execute();
  return row;
}
