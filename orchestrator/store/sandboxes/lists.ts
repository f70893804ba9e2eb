/** SQL of a project's lists of sandboxes: a page, and how many there are. Reads only. */

import { type ExpressionBuilder, sql } from "kysely";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { Database, Tables } from "../tables.ts";
import { byState, matches, type SandboxFilter, stateOf } from "./filter.ts";
import { LISTED, type ListedRecord, type SandboxTable } from "./record.ts";

export interface Position {
  readonly startedAt: number;
  readonly id: string;
}

export function sandboxLists(db: Database, table: Pick<SandboxTable, "only">) {
  const listed = table.only(...LISTED);

  return {
    async list(
      filter: SandboxFilter,
      page: { readonly order: "asc" | "desc"; readonly limit: number; readonly after?: Position },
    ): Promise<ListedRecord[]> {
      const { order, limit, after } = page;
      const ofOneState = (part: SandboxFilter) =>
        db
          .selectFrom((from) => {
            let query = from
              .selectFrom("sandboxes")
              .select(["started_at", "id"])
              .where((where) => matches(where, part));
            if (after !== undefined) query = query.where((where) => isAfter(where, after, order));
            return query.orderBy("started_at", order).orderBy("id", "asc").limit(limit).as("part");
          })
          .selectAll();
      // One statement: between two of them a sandbox could move from a state to another, and be in the page twice or not at all.
      const [first, ...others] = byState(filter).map(ofOneState);
      if (first === undefined) return [];
      const all = others.reduce((query, other) => query.unionAll(other), first);
      // An index alone finds the page; the rest of a row is read for those in the page only.
      const rows = await db
        .selectFrom(all.orderBy("started_at", order).orderBy("id", "asc").limit(limit).as("page"))
        .innerJoin("sandboxes", "sandboxes.id", "page.id")
        .select(listed.columns.map((name) => `sandboxes.${name}` as const))
        .orderBy("page.started_at", order)
        .orderBy("page.id", "asc")
        .execute();
      return rows.map(listed.toRecord);
    },

    async count(filter: SandboxFilter): Promise<ReadonlyMap<SandboxState, number>> {
      // An index alone answers the count of one state, in half the time of a count with groups.
      const ofOneState = (part: SandboxFilter) =>
        db
          .selectFrom("sandboxes")
          .select((select) => [
            sql<SandboxState>`${sql.lit(stateOf(part))}`.as("state"),
            select.fn.countAll<number | string>().as("count"),
          ])
          .where((where) => matches(where, part));
      const [first, ...others] = byState(filter).map(ofOneState);
      if (first === undefined) return new Map();
      const rows = await others.reduce((query, other) => query.unionAll(other), first).execute();
      return new Map(rows.map(({ state, count }) => [state, Number(count)] as const).filter(([, count]) => count > 0));
    },
  };
}

/** An index serves the first condition, which follows from the second. */
function isAfter(where: ExpressionBuilder<Tables, "sandboxes">, { startedAt, id }: Position, order: "asc" | "desc") {
  const [further, notBefore] = order === "asc" ? ([">", ">="] as const) : (["<", "<="] as const);
  return where.and([
    where("started_at", notBefore, startedAt),
    where.or([
      where("started_at", further, startedAt),
      where.and([where("started_at", "=", startedAt), where("id", ">", id)]),
    ]),
  ]);
}
