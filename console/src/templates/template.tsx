/** One template: its builds with their logs, and its tags. */

import { useState } from "preact/hooks";
import { useLocation, useSearchParams } from "wouter-preact";
import type { TemplateWithBuilds, tagApi } from "../../../shared/api/templates.ts";
import { act, get, type Reply } from "../base/client.ts";
import { mebibytes, time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { onSubmit, TextField } from "../parts/field.tsx";
import { Danger, Empty, Failure, Screen, State, Table } from "../parts/parts.tsx";
import { startedFromTemplate } from "../stored/dependents.ts";
import { DependsOn } from "../stored/depends-on.tsx";
import { BuildLog } from "./build-log.tsx";

type Tags = Reply<typeof tagApi.listTags>;
type Build = TemplateWithBuilds["builds"][number];

export function TemplateScreen({ id }: { readonly id: string }) {
  const path = `/templates/${encodeURIComponent(id)}`;
  const [search, setSearch] = useSearchParams();
  const setShown = (build: string) => setSearch({ build });
  const [, go] = useLocation();
  const [asked, setAsked] = useState(false);
  const doing = useDoing();
  const [isDeleted, setDeleted] = useState(false);
  // While the template is being deleted, and afterwards, nothing asks what it is.
  const rests = doing.busy || isDeleted;
  const every = rests ? "not now" : 5_000;
  const loaded = useLoaded((signal) => get<TemplateWithBuilds>(path, { limit: 100 }, signal), [path], every);
  const template = loaded.value;
  const shown = search.get("build") ?? failedNewest(template?.builds ?? []);
  const remove = () =>
    doing.run(async () => {
      await act("DELETE", path);
      setDeleted(true);
      go("/templates");
    });
  const title = template?.names[0] ?? id;
  return (
    <Screen
      title={title}
      acts={
        <Danger disabled={doing.busy || !may("templates")} onAsk={() => setAsked(true)} onConfirm={remove}>
          Delete
        </Danger>
      }
    >
      <Failure of={loaded.error ?? doing.error} />
      {template !== undefined && (
        <>
          <p class="small">
            {template.templateID}, {template.public ? "for everybody" : "for the project"}, started{" "}
            {template.spawnCount} times
          </p>
          {asked && (
            <DependsOn name={title} load={(signal) => startedFromTemplate(template.templateID, signal)}>
              A template is not deleted while a sandbox that was started from it runs or is paused.
            </DependsOn>
          )}
          <h2>Builds</h2>
          <Builds builds={template.builds} shown={shown} show={setShown} />
          {shown !== undefined && !rests && <BuildLog key={shown} path={path} buildId={shown} />}
          <TagList path={path} name={title} rests={rests} />
        </>
      )}
    </Screen>
  );
}

/** The newest build, where it has failed: a person who opens the template then wants to read its log. */
function failedNewest([newest]: readonly Build[]): string | undefined {
  return newest?.status === "error" ? newest.buildID : undefined;
}

function Builds(props: {
  readonly builds: readonly Build[];
  readonly shown: string | undefined;
  readonly show: (id: string) => void;
}) {
  if (props.builds.length === 0) return <Empty title="This template has no build." />;
  return (
    <Table
      label="Builds"
      items={props.builds}
      keyOf={({ buildID }) => buildID}
      columns={[
        { name: "Build", show: ({ buildID }) => <code>{buildID}</code> },
        { name: "State", show: ({ status }) => <State of={status} /> },
        { name: "Begun", show: ({ createdAt }) => time(createdAt) },
        { name: "Ended", show: ({ finishedAt }) => time(finishedAt) },
        { name: "Size", show: ({ cpuCount, memoryMB }) => `${cpuCount} cores, ${mebibytes(memoryMB)}` },
        {
          name: "Acts",
          show: ({ buildID }) => (
            <button
              type="button"
              aria-pressed={buildID === props.shown}
              aria-label={`Log of build ${buildID}`}
              onClick={() => props.show(buildID)}
            >
              Log
            </button>
          ),
        },
      ]}
    />
  );
}

function TagList(props: { readonly path: string; readonly name: string; readonly rests: boolean }) {
  const { path, name, rests } = props;
  const [tag, setTag] = useState("");
  const doing = useDoing();
  const loaded = useLoaded((signal) => get<Tags>(`${path}/tags`, {}, signal), [path], rests ? "not now" : undefined);
  const change = (method: string, body: object) =>
    doing.run(async () => {
      await act(method, "/templates/tags", body);
      setTag("");
      loaded.again();
    });
  const disabled = rests || doing.busy || !may("templates");
  return (
    <>
      <h2>Tags</h2>
      <form class="bar" onSubmit={onSubmit(() => change("POST", { target: name, tags: [tag] }))}>
        <TextField label="Tag for the current build" value={tag} onValue={setTag} required />
        <button type="submit" disabled={disabled}>
          Put it on
        </button>
      </form>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && <Empty title="No build has a tag." />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Tags"
          items={loaded.value}
          keyOf={(item) => item.tag}
          columns={[
            { name: "Tag", show: (item) => item.tag },
            { name: "Build", show: ({ buildID }) => <code>{buildID}</code> },
            { name: "Since", show: ({ createdAt }) => time(createdAt) },
            {
              name: "Acts",
              show: (item) => (
                <Danger
                  disabled={disabled}
                  label={`Take off ${item.tag}`}
                  onConfirm={() => change("DELETE", { name, tags: [item.tag] })}
                >
                  Take off
                </Danger>
              ),
            },
          ]}
        />
      )}
    </>
  );
}
