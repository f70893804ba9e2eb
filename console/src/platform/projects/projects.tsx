/** The projects of the platform, each with what runs of it, and a new one. */

import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { Project, Workspace } from "../../../../shared/api/projects/projects.ts";
import { act, get } from "../../base/client.ts";
import { time } from "../../base/format.ts";
import { useDoing, useLoaded } from "../../base/loaded.ts";
import { operatorProject } from "../../base/session.ts";
import { Choice, onSubmit, TextField } from "../../parts/field.tsx";
import { Empty, Failure, State, Table } from "../../parts/parts.tsx";
import { labelsIn } from "./words.ts";
import { Workspaces } from "./workspaces.tsx";

export function Projects() {
  const [, go] = useLocation();
  const loaded = useLoaded((signal) => get<Project[]>("/admin/projects", {}, signal), [], 10_000);
  const running = useLoaded(
    (signal) => get<Record<string, number>>("/admin/sandboxes/running-counts", {}, signal),
    [],
    10_000,
  );
  const workspaces = useLoaded((signal) => get<Workspace[]>("/admin/workspaces", {}, signal), []);
  const look = (id: string) => {
    operatorProject.value = id;
    go("/");
  };
  return (
    <>
      <h2>Projects</h2>
      <Failure of={loaded.error ?? running.error} />
      {loaded.value?.length === 0 && <Empty title="There is no project: make the first one below." />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Projects"
          items={loaded.value}
          keyOf={({ teamID }) => teamID}
          columns={[
            { name: "Name", show: ({ teamID, name }) => <Link href={`/platform/projects/${teamID}`}>{name}</Link> },
            { name: "State", show: ({ status }) => <State of={status} /> },
            {
              name: "Running",
              show: ({ teamID }) => (running.value === undefined ? "–" : (running.value[teamID] ?? 0)),
            },
            { name: "Id", show: ({ projectID }) => <code>{projectID}</code> },
            { name: "Since", show: ({ createdAt }) => time(createdAt) },
            {
              name: "Acts",
              show: ({ teamID, name }) => (
                <button
                  type="button"
                  aria-pressed={operatorProject.value === teamID}
                  aria-label={`Look at it: project ${name}`}
                  onClick={() => look(teamID)}
                >
                  Look at it
                </button>
              ),
            },
          ]}
        />
      )}
      <p class="small">
        A project’s name leads to its limits, keys and members, and to what an operator may do with it. “Look at it” has
        the other screens show its sandboxes.
      </p>
      <NewProject workspaces={workspaces.value ?? []} />
      <Workspaces loaded={workspaces} projects={loaded.value ?? []} />
    </>
  );
}

function NewProject({ workspaces }: { readonly workspaces: readonly Workspace[] }) {
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [slug, setSlug] = useState("");
  const [region, setRegion] = useState("");
  const [labels, setLabels] = useState("");
  const [workspace, setWorkspace] = useState("");
  const doing = useDoing();
  const create = () =>
    doing.run(async () => {
      const { teamID } = await act<Project>("POST", "/admin/projects", {
        name,
        ...(slug === "" ? {} : { slug }),
        ...(region === "" ? {} : { region }),
        ...(labels === "" ? {} : { nodeLabels: labelsIn(labels) }),
        ...(workspace === "" ? {} : { workspaceID: workspace }),
      });
      go(`/platform/projects/${teamID}`);
    });
  return (
    <>
      <h3>New project</h3>
      <form class="bar" aria-label="New project" onSubmit={onSubmit(create)}>
        <TextField label="Name of the project" value={name} onValue={setName} required />
        <TextField label="Slug (empty: from the name)" value={slug} onValue={setSlug} />
        <TextField label="Region (empty: any node)" value={region} onValue={setRegion} />
        <TextField
          label="Labels its nodes must have"
          value={labels}
          onValue={setLabels}
          placeholder="disk=fast, team=blue"
        />
        {workspaces.length > 1 && (
          <Choice
            label="Workspace"
            value={workspace}
            options={[["", "the default one"], ...workspaces.map((each) => [each.workspaceID, each.name] as const)]}
            onValue={setWorkspace}
          />
        )}
        <button type="submit" disabled={doing.busy}>
          Create a project
        </button>
      </form>
      <Failure of={doing.error} />
    </>
  );
}
