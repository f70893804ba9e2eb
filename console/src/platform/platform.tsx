/** For operators: nodes with what they have and promise, projects, and the audit log. */

import { useState } from "preact/hooks";
import { operatorProject } from "../base/session.ts";
import { AuditLog } from "../parts/audit-log.tsx";
import { Screen } from "../parts/parts.tsx";
import { Nodes } from "./nodes.tsx";
import { Projects } from "./projects/projects.tsx";

export function PlatformScreen() {
  return (
    <Screen title="Platform">
      <Projects />
      <Nodes />
      <Audit />
    </Screen>
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
