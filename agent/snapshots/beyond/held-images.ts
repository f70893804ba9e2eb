/** The images of templates that this node has: those that it has built and those that it has fetched, unless Docker has lost them. */

import type { HeldImage } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { Containers } from "../../containers/containers.ts";
import type { Build } from "../../store/builds.ts";
import type { Stores } from "../../store/stores.ts";
import type { Uploads } from "./uploads.ts";

const LOOK_EVERY_MS = 60_000;
const NAME = /^svc\/build:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

export interface HeldImagesDeps {
  readonly containers: Pick<Containers, "buildImages">;
  readonly stores: Pick<Stores, "builds" | "copies">;
  readonly uploads: Readonly<Record<"snapshots" | "images", Pick<Uploads, "of">>>;
  readonly log: Log;
}

export interface HeldImages {
  /** By the last look at Docker; what came since then counts as there. */
  list(): HeldImage[];
  /** Looks now. */
  look(): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

/** The name in Docker of a build's image; undefined: this node has neither built nor fetched it. */
export function imageOfBuild(
  buildId: string,
  { builds, copies }: Pick<Stores, "builds" | "copies">,
): string | undefined {
  const { state, result } = builds.get(buildId) ?? {};
  if (state === "ready" && result !== undefined) return result.image;
  return copies.all().find((name) => NAME.exec(name)?.[1] === buildId);
}

export function createHeldImages({ containers, stores, uploads, log }: HeldImagesDeps): HeldImages {
  /** Names that Docker did not have. */
  let missing: ReadonlySet<string> = new Set();
  let looks: Loop | undefined;

  const built = () => stores.builds.all().filter(({ state }) => state === "ready");
  const names = () => [...built().flatMap(({ result }) => result?.image ?? []), ...stores.copies.all()];

  const look = async () => {
    const known = names();
    if (known.length === 0) return;
    const there = new Set(await containers.buildImages());
    missing = new Set(known.filter((name) => !there.has(name)));
  };

  const ofBuild = ({ id, snapshotId, projectId, result }: Build): HeldImage => ({
    buildId: id,
    ...defined({ stored: uploads.images.of(id) }),
    ...(projectId === undefined ? { ownerless: true as const } : {}),
    ...(result?.snapshot === undefined || snapshotId === undefined
      ? {}
      : { memory: { snapshotId, ...defined({ stored: uploads.snapshots.of(snapshotId) }) } }),
  });

  return {
    list() {
      const own = built().filter(({ result }) => result !== undefined && !missing.has(result.image));
      const ids = new Set(own.map(({ id }) => id));
      const copied = stores.copies.all().flatMap((name) => {
        const buildId = missing.has(name) ? undefined : NAME.exec(name)?.[1];
        return buildId === undefined || ids.has(buildId) ? [] : [{ buildId }];
      });
      return [...own.map(ofBuild), ...copied];
    },
    look,
    start() {
      looks ??= loop({ name: "look at images", everyMs: LOOK_EVERY_MS, log }, look);
    },
    stop: async () => looks?.stop(),
  };
}
