/** The rows of the page's live list: sandboxes as the API lists them, in larger pages and without what no row shows. */

import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { page } from "../../shared/api/common.ts";
import { ListedSandbox } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import type { sandboxApi } from "../../shared/api/sandboxes/sandboxes.ts";
import { contract, type Handlers } from "../../shared/http/contract.ts";
import { serve } from "../../shared/http/serve.ts";
import type { Auth } from "../access/auth.ts";
import type { ProjectCaller } from "../access/project-caller.ts";

/** Ten thousand rows in twenty requests; the program does nothing else for some milliseconds while it reads one page. */
const MOST_ROWS = 500;

const rowApi = contract({
  listRows: {
    method: "GET",
    path: "/rows",
    summary: "Rows of the live list, newest first",
    tag: "Sandboxes",
    access: "project",
    query: Type.Object({ ...page, limit: Type.Integer({ minimum: 1, maximum: MOST_ROWS }) }),
    status: 200,
    reply: Type.Array(
      Type.Pick(ListedSandbox, ["sandboxID", "templateID", "alias", "state", "startedAt", "endAt", "metadata"]),
    ),
    errors: [400, 401],
  },
});

export type ListHandler = Pick<Handlers<typeof sandboxApi, ProjectCaller>, "list">;

export function addRows(server: FastifyInstance, auth: Pick<Auth, "project">, { list }: ListHandler): void {
  const handlers: Handlers<typeof rowApi, ProjectCaller> = {
    async listRows({ query: { limit, nextToken } }, context) {
      const query = { limit, ...(nextToken === undefined ? {} : { nextToken }) };
      const listed = await list({ query, params: undefined, body: undefined }, context);
      return listed.map(({ sandboxID, templateID, alias, state, startedAt, endAt, metadata }) => ({
        sandboxID,
        templateID,
        ...(alias === undefined ? {} : { alias }),
        state,
        startedAt,
        endAt,
        ...(metadata === undefined ? {} : { metadata }),
      }));
    },
  };
  serve(server, rowApi, handlers, auth.project);
}
