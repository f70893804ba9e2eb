/**
 * Bodies between orchestrator and agent about the build of a template. Closed, like all of `shapes.ts`: a node that does
 * not know a step must refuse it.
 */

import { type Static, Type } from "typebox";
import { FILE_MODE, LONGEST_FILE_MODE } from "../dockerfile/file-mode.ts";
import { BuildReference, closed, Resources, SnapshotId, time } from "./shapes.ts";

const text = Type.String({ maxLength: 262_144 });
const secret = Type.String({ minLength: 1, maxLength: 65_536 });
const strings = Type.Record(Type.String(), Type.String());

/** Credentials of a registry: sent with the request and kept as long as the pull, never stored, logged or answered. */
export const RegistryAccess = Type.Union([
  Type.Object({ type: Type.Literal("registry"), username: secret, password: secret }, closed),
  Type.Object(
    { type: Type.Literal("aws"), awsAccessKeyId: secret, awsSecretAccessKey: secret, awsRegion: secret },
    closed,
  ),
  Type.Object({ type: Type.Literal("gcp"), serviceAccountJson: secret }, closed),
]);
export type RegistryAccess = Static<typeof RegistryAccess>;

const filesHash = Type.String({ pattern: "^[0-9a-f]{64}$" });

/** Fields of every step. */
const step = {
  /** Position from 1, as clients count; a failure names it in `reason.step`. */
  number: Type.Integer({ minimum: 1 }),
  /** Runs this step and all later ones again, without the cache. */
  force: Type.Boolean(),
};

export const BuildStep = Type.Union([
  Type.Object({ ...step, type: Type.Literal("RUN"), command: text, user: Type.Optional(Type.String()) }, closed),
  Type.Object(
    {
      ...step,
      type: Type.Literal("COPY"),
      source: text,
      destination: text,
      /** `name` or `name:group`, each a name or a number. */
      user: Type.Optional(Type.String()),
      /** File mode, in octal or symbolic. */
      mode: Type.Optional(Type.String({ pattern: FILE_MODE, maxLength: LONGEST_FILE_MODE })),
      /** Hash of the archive, which the node fetches from the orchestrator (`templateFiles`). */
      filesHash,
    },
    closed,
  ),
  /** In order: a later value sees an earlier variable of the same step, unlike in a Dockerfile. */
  Type.Object({ ...step, type: Type.Literal("ENV"), variables: Type.Array(Type.Tuple([text, text])) }, closed),
  Type.Object({ ...step, type: Type.Literal("WORKDIR"), path: text }, closed),
  Type.Object({ ...step, type: Type.Literal("USER"), user: text }, closed),
]);
export type BuildStep = Static<typeof BuildStep>;

const context = { envs: strings, user: Type.String(), workdir: Type.String() };

/** Settings of a build's sandboxes, and of the next build on top of it. */
export const BuildSettings = Type.Object(
  {
    ...context,
    startCmd: Type.Optional(text),
    readyCmd: Type.Optional(text),
    /** The build that defined the start command, if it was one below: it runs with that build's settings. */
    startContext: Type.Optional(Type.Object(context, closed)),
  },
  closed,
);
export type BuildSettings = Static<typeof BuildSettings>;

export const BuildBody = Type.Object(
  {
    templateId: Type.String(),
    resources: Resources,
    from: Type.Union([
      /** `base` and its aliases are the node's own image: no registry. */
      Type.Object({ is: Type.Literal("image"), image: Type.String(), access: Type.Optional(RegistryAccess) }, closed),
      /** An OCI layout in a tar, which a client uploaded like the files of a COPY step. `ref`: the image, where it has several. */
      Type.Object(
        { is: Type.Literal("archive"), filesHash, ref: Type.Optional(Type.String({ maxLength: 512 })) },
        closed,
      ),
      Type.Object({ is: Type.Literal("build"), build: BuildReference, settings: BuildSettings }, closed),
    ]),
    steps: Type.Array(BuildStep),
    /** Runs every step again, without the cache. */
    force: Type.Boolean(),
    /** Absent: the commands of the build below, if any. */
    startCmd: Type.Optional(text),
    readyCmd: Type.Optional(text),
    /** Limit of the whole build, milliseconds. */
    limitMs: Type.Integer({ minimum: 1_000 }),
    /** The project that owns the template: the template's stored memory counts in that project's quota. */
    projectId: Type.Optional(Type.String({ maxLength: 64 })),
  },
  closed,
);
export type BuildBody = Static<typeof BuildBody>;

export const BuildLogEntry = Type.Object(
  {
    at: time,
    level: Type.Enum(["debug", "info", "warn", "error"]),
    message: Type.String(),
    /** As in `reason.step`. */
    step: Type.Optional(Type.String()),
  },
  closed,
);
export type BuildLogEntry = Static<typeof BuildLogEntry>;

export const BuildState = Type.Object(
  {
    buildId: Type.String(),
    status: Type.Enum(["building", "ready", "error"]),
    /** From the requested offset on. */
    entries: Type.Array(BuildLogEntry),
    /** Of a failed build. `step`: `base`, the number of a step, or `finalize`. */
    reason: Type.Optional(Type.Object({ message: Type.String(), step: Type.Optional(Type.String()) }, closed)),
    /** Of a ready build. */
    result: Type.Optional(
      Type.Object(
        {
          image: Type.String(),
          settings: BuildSettings,
          diskBytes: Type.Integer({ minimum: 0 }),
          envdVersion: Type.String(),
          /** Taken with the start command running: sandboxes start as copies of it (`Origin` `snapshot`). */
          snapshot: Type.Optional(
            Type.Object(
              { snapshotId: SnapshotId, memory: Type.Boolean(), memoryBytes: Type.Integer({ minimum: 0 }) },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type BuildState = Static<typeof BuildState>;
