/** One project, as an operator sees it: limits beside use, keys, members, sandboxes, and what can be done with it. */

import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { Project, Workspace } from "../../../../shared/api/projects/projects.ts";
import { act, get } from "../../base/client.ts";
import { Failed } from "../../base/failed.ts";
import { time } from "../../base/format.ts";
import { useDoing, useLoaded } from "../../base/loaded.ts";
import { operatorProject } from "../../base/session.ts";
import { AuditLog } from "../../parts/audit-log.tsx";
import { Choice, onSubmit, TextField } from "../../parts/field.tsx";
import { Failure, Screen, State } from "../../parts/parts.tsx";
import { Keys, placesOf } from "../../project/keys.tsx";
import { LimitTable } from "../../project/limits.tsx";
import { MembersOfProject } from "../../project/members.tsx";
import { PlacedSandboxes } from "../placed-sandboxes.tsx";
import { ChangeLimit } from "./change-limit.tsx";
import { DeletionOfProject } from "./deletion.tsx";
import { StandingOfProject } from "./standing.tsx";
import { labelsIn, labelText } from "./words.ts";

const EVERY_MS = 10_000;

export function ProjectOfPlatformScreen({ id }: { readonly id: string }) {
  const [, go] = useLocation();
  const path = `/admin/projects/${encodeURIComponent(id)}`;
  const [isGone, setGone] = useState(false);
  const loaded = useLoaded(
    async (signal) => {
      const found = await projectAt(path, signal);
      setGone(found === null || found.status === "deleting");
      return found;
    },
    [path],
    // The deletion has a record of its own, which is read again and again.
    isGone ? "when asked" : EVERY_MS,
  );
  const project = loaded.value;
  const look = (teamID: string) => {
    operatorProject.value = teamID;
    go("/");
  };
  return (
    <Screen
      title={`Project ${project?.name ?? id}`}
      acts={
        <>
          <Link class="button" href="/platform">
            All projects
          </Link>
          {project !== undefined && project !== null && !isGone && (
            <button type="button" onClick={() => look(project.teamID)}>
              Look at its sandboxes
            </button>
          )}
        </>
      }
    >
      <Failure of={loaded.error} />
      {isGone && <DeletionOfProject path={path} />}
      {project !== undefined && project !== null && !isGone && (
        <Living project={project} path={path} again={loaded.again} />
      )}
    </Screen>
  );
}

/** Null: there is none, or none any more. */
async function projectAt(path: string, signal: AbortSignal): Promise<Project | null> {
  try {
    return await get<Project>(path, {}, signal);
  } catch (error) {
    if (error instanceof Failed && error.status === 404) return null;
    throw error;
  }
}

interface Shown {
  readonly project: Project;
  readonly path: string;
  readonly again: () => void;
}

function Living({ project, path, again }: Shown) {
  const { teamID, projectID, slug, status, statusReason, region, nodeLabels, createdAt } = project;
  return (
    <>
      <dl class="facts">
        {(
          [
            ["State", <State key="state" of={status} />],
            ["Reason", statusReason ?? "–"],
            ["Id", <code key="id">{projectID}</code>],
            ["Team id", <code key="team">{teamID}</code>],
            ["Slug", slug],
            ["Region", region ?? "any"],
            ["Labels of its nodes", labelText(nodeLabels) || "any"],
            ["Since", time(createdAt)],
          ] as const
        ).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <StandingOfProject project={project} path={path} again={again} />
      <LimitTable path={`${path}/limits`}>
        {(limits, read) => <ChangeLimit limits={limits} path={path} again={read} />}
      </LimitTable>
      <Keys places={placesOf(teamID)} />
      {/* The API refuses every request of a banned project. */}
      {status === "banned" ? (
        <>
          <h2>Members</h2>
          <p class="small">A banned project tells nobody who its members are: take it back to see them.</p>
        </>
      ) : (
        <MembersOfProject teamID={teamID} />
      )}
      <h2>Name and nodes</h2>
      <Change key={teamID} project={project} path={path} again={again} />
      <h2>Its sandboxes</h2>
      <PlacedSandboxes label={`Sandboxes of ${project.name}`} query={{ teamID }} />
      <h2>What operators did with it</h2>
      <AuditLog
        path="/admin/audit"
        label="What operators did with the project"
        query={{ object: teamID }}
        empty="No operator has changed this project by its team id."
        needs={[JSON.stringify(project)]}
      />
      <h2>Who did what in it</h2>
      <AuditLog
        path="/admin/audit"
        label="Audit log of the project"
        query={{ teamID }}
        empty="Nothing was changed in this project yet."
      />
    </>
  );
}

function Change({ project, path, again }: Shown) {
  const [name, setName] = useState(project.name);
  const [labels, setLabels] = useState(labelText(project.nodeLabels));
  const [workspace, setWorkspace] = useState(project.workspaceID ?? "");
  const [note, setNote] = useState("");
  const doing = useDoing();
  const { value: workspaces = [], error } = useLoaded(
    (signal) => get<Workspace[]>("/admin/workspaces", {}, signal),
    [],
  );
  const change = () =>
    doing.run(async () => {
      setNote("");
      const moved = workspace === (project.workspaceID ?? "") ? {} : { workspaceID: workspace };
      await act("PATCH", path, { name, nodeLabels: labelsIn(labels), ...moved });
      setNote("Changed.");
      again();
    });
  return (
    <>
      <form class="bar" aria-label="Name and nodes" onSubmit={onSubmit(change)}>
        <TextField label="Name of the project" value={name} onValue={setName} required />
        <TextField label="Labels its nodes must have" value={labels} onValue={setLabels} />
        {workspaces.length > 1 && (
          <Choice
            label="Workspace"
            value={workspace}
            options={[
              ...(project.workspaceID === null ? [["", "none"] as const] : []),
              ...workspaces.map((each) => [each.workspaceID, each.name] as const),
            ]}
            onValue={setWorkspace}
          />
        )}
        <button type="submit" disabled={doing.busy}>
          Change
        </button>
        <span class="small" role="status">
          {note}
        </span>
      </form>
      <p class="small">Other labels are for what starts from now on: what runs stays where it is.</p>
      <Failure of={error ?? doing.error} />
    </>
  );
}
