/** For operators: nodes with what they have and promise, projects, and the audit log. */

import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Project } from "../../../shared/api/projects/projects.ts";
import { get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { operatorProject } from "../base/session.ts";
import { AuditLog } from "../parts/audit-log.tsx";
import { Empty, Failure, Screen, State, Table } from "../parts/parts.tsx";
import { Nodes } from "./nodes.tsx";

export function PlatformScreen() {
  return (
    <Screen title="Platform">
      <Projects />
      <Nodes />
      <Audit />
    </Screen>
  );
}

function Projects() {
  const [, go] = useLocation();
  const loaded = useLoaded((signal) => get<Project[]>("/admin/projects", {}, signal), []);
  const look = (id: string) => {
    operatorProject.value = id;
    go("/");
  };
  return (
    <>
      <h2>Projects</h2>
      <Failure of={loaded.error} />
      {loaded.value?.length === 0 && <Empty title="There is no project: ./scripts/up makes the first one." />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Projects"
          items={loaded.value}
          keyOf={({ teamID }) => teamID}
          columns={[
            { name: "Name", show: ({ name }) => name },
            { name: "State", show: ({ status }) => <State of={status} /> },
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
    </>
  );
}

function Audit() {
  const [project, setProject] = useState(false);
  const teamID = project ? operatorProject.value : undefined;
  return (
    <>
      <h2>Audit log</h2>
      {operatorProject.value !== undefined && (
        <label class="check">
          <input type="checkbox" checked={project} onChange={() => setProject(!project)} /> only of the chosen project
        </label>
      )}
      <AuditLog path="/admin/audit" label="Audit log" query={{ teamID }} empty="Nothing was changed yet." />
    </>
  );
}
