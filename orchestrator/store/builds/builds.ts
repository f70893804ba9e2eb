/** The life of a build: requested, started, on a node, ended. The only SQL that sets its status (build-status.ts). */

import { sql } from "kysely";
import type { BuildLogEntry } from "../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { newUuid } from "../../../shared/ids.ts";
import { type BuildStatus, statusesBefore } from "../../../shared/states/build-status.ts";
import { lock, locks } from "../locks.ts";
import { lives } from "../membership/membership.ts";
import type { Member } from "../membership/record.ts";
import { readNodeLabels } from "../projects/record.ts";
import type { Database, Session } from "../tables.ts";
import { type TemplateName, templateNamed } from "../templates/named.ts";
import { type Template, toTemplate } from "../templates/record.ts";
import { assign } from "../templates/tags.ts";
import { inTransaction } from "../transactions.ts";
import { queueRemovals } from "./leftovers.ts";
import { append } from "./logs.ts";
import { type Build, buildTable, toBuild } from "./record.ts";

export interface NewBuild extends TemplateName {
  readonly tags: readonly string[];
  readonly resources: { readonly cpuCount: number; readonly memoryMB: number; readonly diskSizeMB: number };
  readonly envdVersion: string;
}

export interface StartedBuild {
  readonly id: string;
  readonly sealedBody: string;
  readonly withAccess: boolean;
  readonly parentBuildId: string | undefined;
  readonly diskSizeMB: number;
  readonly files: readonly string[];
  /** End of the longest wait in the queue, unix milliseconds. */
  readonly deadlineAt: number;
}

export interface MadeBuild {
  readonly image: string;
  readonly sealedSettings: string;
  readonly user: string;
  readonly workdir: string;
  readonly envdVersion: string;
  readonly snapshot: { readonly id: string; readonly memory: boolean } | undefined;
}

export interface BuildReason {
  readonly message: string;
  readonly step: string | undefined;
}

/** A build under way. */
export type UnderWayBuild = Build & {
  readonly projectId: string;
  readonly region: string | undefined;
  /** Labels that the node must have. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Another orchestrator, which lives, has its registry's credentials and works on it. */
  readonly elsewhere: boolean;
};

/** @param members this process as one of several; absent: no other one works on builds */
export function buildStore(
  db: Database,
  { now, members }: { readonly now: () => number; readonly members?: { readonly self: Member | undefined } },
) {
  function ownerOf({ withAccess }: StartedBuild) {
    if (members === undefined || !withAccess) return {};
    const { self } = members;
    if (self !== undefined) return { owner: self.id, ownerEpoch: self.epoch };
    throw new AppError("unavailable", "this orchestrator has lost its connection to the database: try again");
  }

  /** Whether another member that lives owns the build. */
  const elsewhere = (session: Session) =>
    members === undefined
      ? sql<unknown>`1 = 0`
      : sql<unknown>`builds.owner is not null and builds.owner <> ${members.self?.id ?? ""}
          and ${lives(session, { owner: "builds.owner", epoch: "builds.owner_epoch" })}`;

  /** building → error, and queues the removal from its node. Undefined: the build had ended or was deleted. */
  async function fail(
    session: Session,
    id: string,
    reason: BuildReason,
    logged: "logged" | "not logged",
  ): Promise<Build | undefined> {
    const at = now();
    const row = await session
      .updateTable("builds")
      .set(buildTable.toColumns({ status: "error", sealedBody: null, reason, updatedAt: at, finishedAt: at }))
      .where("id", "=", id)
      .where("status", "in", statusesBefore("error"))
      .returningAll()
      .executeTakeFirst();
    if (row === undefined) return undefined;
    if (logged === "not logged") {
      const step = reason.step === undefined ? {} : { step: reason.step };
      await append(session, id, [{ at, level: "error", message: reason.message, ...step }]);
    }
    const build = toBuild(row);
    await queueRemovals(session, [build], at);
    return build;
  }

  return {
    /** Adds a waiting build to the named template, which is made when missing. Undefined: the name is a snapshot's. */
    async request(ask: NewBuild): Promise<{ readonly template: Template; readonly build: Build } | undefined> {
      return inTransaction(db, async (session) => {
        const at = now();
        const template = await templateNamed(session, ask, at);
        if (template.kind !== "template") return undefined;
        const row = buildTable.toRow({
          id: newUuid(),
          templateId: template.id,
          status: "waiting",
          kind: "template",
          image: "",
          ...ask.resources,
          envdVersion: ask.envdVersion,
          createdAt: at,
          updatedAt: at,
          wantedTags: ask.tags,
        });
        await session.insertInto("builds").values(row).execute();
        return { template: toTemplate(template), build: toBuild(row) };
      });
    },

    /**
     * waiting → building, into the queue. Builds under way that would get one of its tags fail in the same transaction:
     * the new build supersedes them. Undefined: the build was not waiting.
     */
    async start(started: StartedBuild): Promise<{ readonly build: Build; readonly superseded: Build[] } | undefined> {
      return inTransaction(db, async (session) => {
        const at = now();
        const row = await session
          .updateTable("builds")
          .set(
            buildTable.toColumns({
              status: "building",
              sealedBody: started.sealedBody,
              withAccess: started.withAccess,
              ...ownerOf(started),
              parentBuildId: started.parentBuildId ?? null,
              diskSizeMB: started.diskSizeMB,
              startedAt: at,
              updatedAt: at,
              deadlineAt: started.deadlineAt,
            }),
          )
          .where("id", "=", started.id)
          .where("status", "in", statusesBefore("building"))
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const build = toBuild(row);
        for (const hash of new Set(started.files)) {
          await session.insertInto("build_files").values({ build_id: build.id, hash }).execute();
        }
        // Of two builds that start at the same time, the second one sees the first.
        await lock(session, locks.template(build.templateId));
        const others = await session
          .selectFrom("builds")
          .selectAll()
          .where("template_id", "=", build.templateId)
          .where("status", "=", "building")
          .where("kind", "=", "template")
          .where("id", "!=", build.id)
          .execute();
        const superseded: Build[] = [];
        for (const other of others.map(toBuild)) {
          if (!other.wantedTags.some((tag) => build.wantedTags.includes(tag))) continue;
          const message = `superseded by a newer build of the same name and tag (${build.id})`;
          const failed = await fail(session, other.id, { message, step: undefined }, "not logged");
          if (failed !== undefined) superseded.push(failed);
        }
        return { build, superseded };
      });
    },

    /** Everything under way, in the order of its start. */
    async underWay(projectId?: string): Promise<UnderWayBuild[]> {
      let query = db
        .selectFrom("builds")
        .innerJoin("templates", "templates.id", "builds.template_id")
        .selectAll("builds")
        .leftJoin("projects", "projects.id", "templates.project_id")
        .select(["templates.project_id", "projects.region", "projects.node_labels", elsewhere(db).as("elsewhere")])
        .where("builds.status", "=", "building")
        .where("builds.kind", "=", "template");
      if (projectId !== undefined) query = query.where("templates.project_id", "=", projectId);
      const rows = await query.orderBy("builds.started_at").orderBy("builds.id").execute();
      return rows.map((row) => ({
        ...toBuild(row),
        projectId: row.project_id ?? "",
        region: row.region ?? undefined,
        nodeLabels: readNodeLabels(row.node_labels),
        // SQLite has numbers for these.
        elsewhere: Boolean(row.elsewhere),
      }));
    },

    /** The sealed start request. Undefined: the build has ended or never started. */
    async body(id: string): Promise<string | undefined> {
      const row = await db.selectFrom("builds").select("body").where("id", "=", id).executeTakeFirst();
      return row?.body ?? undefined;
    },

    /** Gives a queued build to a node, before the node is asked. False: the build is no longer in the queue. */
    async place(id: string, nodeId: string, deadlineAt: number): Promise<boolean> {
      return changed(
        db
          .updateTable("builds")
          .set({ node_id: nodeId, deadline_at: deadlineAt, updated_at: now() })
          .where("id", "=", id)
          .where("status", "=", "building")
          .where("node_id", "is", null),
      );
    },

    /** Puts a build that its node refused back into the queue. */
    async requeue(id: string, nodeId: string, deadlineAt: number): Promise<boolean> {
      return changed(
        db
          .updateTable("builds")
          .set({ node_id: null, deadline_at: deadlineAt, updated_at: now() })
          .where("id", "=", id)
          .where("status", "=", "building")
          .where("accepted", "=", 0)
          .where("node_id", "=", nodeId),
      );
    },

    /** The node has what it needs: the build has no owner any more. */
    async accepted(id: string): Promise<boolean> {
      return changed(
        db
          .updateTable("builds")
          .set({ accepted: 1, owner: null, owner_epoch: null, updated_at: now() })
          .where("id", "=", id)
          .where("status", "=", "building"),
      );
    },

    /** Appends the node's log entries from `offset`. False: the build has ended, or another reader has stored them. */
    async log(id: string, offset: number, entries: readonly BuildLogEntry[]): Promise<boolean> {
      return inTransaction(db, async (session) => {
        const own = await changed(
          session
            .updateTable("builds")
            .set({ log_offset: offset + entries.length })
            .where("id", "=", id)
            .where("status", "=", "building")
            .where("log_offset", "=", offset),
        );
        if (own) await append(session, id, entries);
        return own;
      });
    },

    /**
     * Moves the build to `ready` and its tags to it. `former`: the builds that the tags named before. Undefined: the
     * build had ended or was deleted.
     */
    async finish(
      id: string,
      made: MadeBuild,
    ): Promise<{ readonly build: Build; readonly former: ReadonlySet<string> } | undefined> {
      return inTransaction(db, async (session) => {
        const at = now();
        const row = await session
          .updateTable("builds")
          .set(
            buildTable.toColumns({
              status: "ready",
              sealedBody: null,
              image: made.image,
              sealedSettings: made.sealedSettings,
              defaultUser: made.user,
              defaultWorkdir: made.workdir,
              envdVersion: made.envdVersion,
              snapshotId: made.snapshot?.id ?? null,
              memory: made.snapshot?.memory,
              updatedAt: at,
              finishedAt: at,
            }),
          )
          .where("id", "=", id)
          .where("status", "in", statusesBefore("ready"))
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const build = toBuild(row);
        const tagged = await session
          .selectFrom("build_tags")
          .select("build_id")
          .where("template_id", "=", build.templateId)
          .where("tag", "in", build.wantedTags)
          .execute();
        await assign(session, { templateId: build.templateId, buildId: id, tags: build.wantedTags, at });
        return { build, former: new Set(tagged.map(({ build_id: buildId }) => buildId)) };
      });
    },

    fail: (id: string, reason: BuildReason, logged: "logged" | "not logged") =>
      inTransaction(db, (session) => fail(session, id, reason, logged)),

    async countByStatus(): Promise<ReadonlyMap<BuildStatus, number>> {
      const rows = await db
        .selectFrom("builds")
        .select(["status", (select) => select.fn.countAll<number>().as("count")])
        .where("kind", "=", "template")
        .groupBy("status")
        .execute();
      return new Map(rows.map(({ status, count }) => [status, count]));
    },
  };
}

async function changed(update: { executeTakeFirst(): Promise<{ readonly numUpdatedRows: bigint }> }): Promise<boolean> {
  return (await update.executeTakeFirst()).numUpdatedRows === 1n;
}
