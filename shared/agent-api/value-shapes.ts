/** Values of placeholders in header rules, which a node fetches from the orchestrator at the moment of use. */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";
import { closed, time } from "./shapes.ts";

/** Called by nodes. Bearer: the node's token. */
export const valueApi = contract({
  // 404 not_found: the secret or token does not exist (any more), message for people without the value. 403: not this node's execution, or not in its rules.
  resolveValue: {
    method: "POST",
    path: "/v1/values",
    summary: "The value of a placeholder, for an execution that runs on the calling node and whose rules contain it",
    tag: "Nodes",
    access: "node",
    body: Type.Object(
      {
        executionId: Type.String({ format: "uuid" }),
        /** `e2b.secrets.NAME` or `e2b.identity.tokens.NAME`, as `asks` of shared/policy/placeholders.ts. */
        asks: Type.String({ minLength: 1, maxLength: 160 }),
      },
      closed,
    ),
    status: 200,
    reply: Type.Object(
      {
        value: Type.String(),
        /** Unix ms until which the node may keep it; the node also keeps it for at most a second (secrets) or until shortly before this time (tokens). */
        usableUntil: time,
      },
      closed,
    ),
  },
  reportUses: {
    method: "POST",
    path: "/v1/values/uses",
    summary: "Counts of uses since the last report; repeating a report (same reportId) is harmless",
    tag: "Nodes",
    access: "node",
    body: Type.Object(
      {
        reportId: Type.String({ format: "uuid" }),
        uses: Type.Array(
          Type.Object(
            {
              executionId: Type.String({ format: "uuid" }),
              asks: Type.String(),
              host: Type.String(),
              count: Type.Integer({ minimum: 1 }),
              lastAt: time,
            },
            closed,
          ),
          { maxItems: 1000 },
        ),
      },
      closed,
    ),
    status: 204,
  },
});
