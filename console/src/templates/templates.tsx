/** The templates that the project can start from. */

import { Link } from "wouter-preact";
import type { Template } from "../../../shared/api/templates.ts";
import { pages } from "../base/client.ts";
import { mebibytes, time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Empty, Failure, Screen, State, Table } from "../parts/parts.tsx";

export function TemplatesScreen() {
  const loaded = useLoaded((signal) => pages<Template>("/v2/templates", signal), []);
  const templates = loaded.value;
  return (
    <Screen
      title="Templates"
      acts={
        <Link href="/build" class="button main">
          Build a template
        </Link>
      }
    >
      <Failure of={loaded.error} />
      {templates?.length === 0 && (
        <Empty title="The project has no template of its own.">
          <p>
            Every project can start from <code>base</code>. <Link href="/build">Build another one here</Link>, or with
            an SDK: <code>Template.build(…)</code>.
          </p>
        </Empty>
      )}
      {templates !== undefined && templates.length > 0 && (
        <Table
          label="Templates"
          items={templates}
          keyOf={({ templateID }) => templateID}
          columns={[
            {
              name: "Template",
              show: ({ templateID, names: [name] }) => (
                <Link href={`/templates/${templateID}`}>{name ?? templateID}</Link>
              ),
            },
            { name: "Build", show: ({ buildStatus }) => <State of={buildStatus} /> },
            { name: "Size", show: ({ cpuCount, memoryMB }) => `${cpuCount} cores, ${mebibytes(memoryMB)}` },
            { name: "For", show: (template) => (template.public ? "everybody" : "the project") },
            { name: "Started", show: ({ spawnCount }) => `${spawnCount} times` },
            { name: "Last", show: ({ lastSpawnedAt }) => time(lastSpawnedAt) },
            { name: "Changed", show: ({ updatedAt }) => time(updatedAt) },
          ]}
        />
      )}
    </Screen>
  );
}
