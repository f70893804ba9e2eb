/** Changes of a sandbox's state on the public API: pause, resume, rewind, fork. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { bySandbox, inSeconds, open, otherNames } from "../common.ts";
import { Sandbox, StartResult, timeout } from "./sandbox-shapes.ts";

/** What the routes of one sandbox have in common. */
export const one = { tag: "Sandboxes", access: "project", params: bySandbox } as const;
/** Of what starts a sandbox. */
export const placementErrors = [400, 401, 404, 429, 500, 503, 504, 507] as const;

export const sandboxStateApi = contract({
  pause: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/pause",
    summary: "Pause a sandbox",
    body: Type.Object(
      {
        memory: Type.Optional(Type.Boolean({ default: true })),
        frozen: Type.Optional(
          Type.Boolean({
            default: true,
            description: "false: every resume comes from the disk, and timers of programs leave out the pause",
          }),
        ),
      },
      { ...open, ...otherNames({ keepMemory: "`memory`" }) },
    ),
    optionalBody: true,
    status: 204,
    errors: [400, 401, 404, 409, 500, 503, 507],
  },
  resume: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/resume",
    summary: "Resume a paused sandbox",
    deprecated: true,
    body: Type.Object(
      {
        timeout: Type.Optional(timeout),
        autoPause: Type.Optional(Type.Boolean({ deprecated: true })),
        memory: Type.Optional(Type.Boolean({ default: true })),
      },
      { ...open, ...otherNames({ ...inSeconds, keepMemory: "`memory`" }) },
    ),
    optionalBody: true,
    status: 201,
    reply: Sandbox,
    errors: [...placementErrors, 409],
  },
  rewind: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/rewind",
    summary:
      "Put a sandbox back to a snapshot of it: it keeps its id, tokens, address and policy; a paused one runs afterwards",
    body: Type.Object(
      {
        snapshotID: Type.String({
          minLength: 1,
          maxLength: 256,
          description:
            "A snapshot of this sandbox, or of the one that it was forked or started from, taken before that",
        }),
        memory: Type.Optional(
          Type.Boolean({ default: true, description: "false: boots from the snapshot's disk alone" }),
        ),
        timeout: Type.Optional({
          ...timeout,
          default: undefined,
          description:
            "Seconds from now until its end; absent: a running sandbox keeps its end, a paused one gets 300 s",
        }),
      },
      { ...open, ...otherNames({ ...inSeconds, keepMemory: "`memory`" }) },
    ),
    status: 200,
    reply: Sandbox,
    errors: [...placementErrors, 409],
  },
  fork: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/fork",
    summary: "Start copies of a running sandbox",
    body: Type.Object(
      {
        timeout: Type.Optional(timeout),
        count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 1 })),
        memory: Type.Optional(
          Type.Boolean({ default: true, description: "false: the copies boot from the disk alone" }),
        ),
      },
      { ...open, ...otherNames({ ...inSeconds, keepMemory: "`memory`" }) },
    ),
    optionalBody: true,
    status: 201,
    reply: Type.Array(StartResult),
    errors: [400, 401, 404, 409, 500, 503, 507],
  },
});
