/** Reads from a statement whether it can change rows, and which row it adds. Pure. */

import { type CompiledQuery, InsertQueryNode, type OperationNode, RawNode } from "kysely";
import { defined } from "../../../shared/defined.ts";

const CHANGING = new Set(["InsertQueryNode", "UpdateQueryNode", "DeleteQueryNode", "MergeQueryNode"]);

/** Statements of the schema are not counted. */
export function writes({ query, sql }: CompiledQuery): boolean {
  if (CHANGING.has(query.kind)) return true;
  return RawNode.is(query) && /^\s*(with\b.*\b)?(insert\s+into|update|delete\s+from)\b/is.test(sql);
}

export interface Added {
  readonly objectId?: string;
  readonly projectId?: string;
}

/** The `id` of the first row that an `insert … values` adds to `table`, and its `project_id`. */
export function added({ query }: CompiledQuery, table: string | undefined): Added {
  if (table === undefined || !InsertQueryNode.is(query)) return {};
  if (query.into?.table.identifier.name !== table) return {};
  const names = query.columns?.map(({ column }) => column.name) ?? [];
  const values = valuesOf(query.values);
  const text = (name: string) => {
    const value = values[names.indexOf(name)];
    return typeof value === "string" ? value : undefined;
  };
  const objectId = text("id");
  const projectId = text("project_id");
  return defined({ objectId, projectId });
}

/** Kysely keeps plain values in one kind of node, and values among expressions in another. */
function valuesOf(node: OperationNode | undefined): readonly unknown[] {
  if (node === undefined || !("values" in node)) return [];
  const [row] = node.values as readonly OperationNode[];
  if (row === undefined || !("values" in row)) return [];
  const values = row.values as readonly unknown[];
  if (row.kind === "PrimitiveValueListNode") return values;
  return values.map((value) => (isValue(value) ? value.value : undefined));
}

function isValue(node: unknown): node is { readonly value: unknown } {
  return typeof node === "object" && node !== null && "value" in node;
}
