/** One sandbox: what it is, what can be done with it, and a tab for each thing that it has. */

import { useEffect, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { SandboxDetail, StartResult } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { get, perform } from "../base/client.ts";
import { mebibytes, pairs, span, time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import type { ActRequest } from "../base/performed.ts";
import { may } from "../base/session.ts";
import { watchEvents } from "../base/stream.ts";
import { ActsAsCode } from "../code/as-code.tsx";
import { Danger, Empty, Failure, Screen, State } from "../parts/parts.tsx";
import { killSandbox, pauseSandbox, resumeSandbox } from "../sandboxes/acts.ts";
import { requests } from "../sandboxes/requests.ts";
import { FilesTab } from "./files/files.tsx";
import { LogsTab } from "./logs.tsx";
import { MetricsTab } from "./metrics.tsx";
import { NetworkTab } from "./network/network.tsx";
import { ProcessesTab } from "./processes.tsx";
import { RawTab } from "./raw.tsx";
import { ScreenTab } from "./screen/screen.tsx";
import { SnapshotsTab } from "./snapshots/snapshots.tsx";
import type { TabProps } from "./tab.ts";
import { TerminalTab } from "./terminal.tsx";
import { TimelineTab } from "./timeline.tsx";

/** What “One more hour” gives. */
const LONGER_S = 3600;

interface Tab {
  readonly id: string;
  readonly name: string;
  readonly show: (props: TabProps) => preact.JSX.Element;
  /** Needs a sandbox that runs. */
  readonly runs?: true;
  /** Needs a key that may change sandboxes. */
  readonly changes?: true;
}

const TABS: readonly Tab[] = [
  { id: "timeline", name: "Timeline", show: TimelineTab },
  { id: "terminal", name: "Terminal", show: TerminalTab, runs: true, changes: true },
  { id: "screen", name: "Screen", show: ScreenTab, runs: true, changes: true },
  { id: "logs", name: "Logs", show: LogsTab },
  { id: "files", name: "Files", show: FilesTab, runs: true, changes: true },
  { id: "metrics", name: "Metrics", show: MetricsTab },
  { id: "processes", name: "Processes and ports", show: ProcessesTab, runs: true, changes: true },
  { id: "network", name: "Network", show: NetworkTab },
  { id: "snapshots", name: "Snapshots", show: SnapshotsTab },
  { id: "raw", name: "Raw", show: RawTab },
];

/** A pause or kill by this page. `done`: it has ended, and the page reads what the sandbox is now. */
type Stopping = "no" | "begun" | "done";

export function SandboxScreen({ id, tab = "timeline" }: { readonly id: string; readonly tab: string | undefined }) {
  const path = `/sandboxes/${encodeURIComponent(id)}`;
  const loaded = useLoaded((signal) => get<SandboxDetail>(path, { ended: true }, signal), [path], 15_000);
  const { again } = loaded;
  useEffect(
    () => watchEvents({ event: ({ sandboxId }) => sandboxId === id && again(), state: () => undefined }),
    [id, again],
  );
  const sandbox = loaded.value;
  const [stopping, setStopping] = useState<Stopping>("no");
  // What came of it was read, or could not be read.
  useEffect(() => setStopping((now) => (now === "done" ? "no" : now)), [loaded.value, loaded.error]);
  const stop = async (work: () => Promise<void>) => {
    setStopping("begun");
    try {
      await work();
      setStopping("done");
    } catch (error) {
      setStopping("no");
      throw error;
    }
  };
  return (
    <Screen title={id} acts={sandbox !== undefined && <Acts sandbox={sandbox} again={again} stop={stop} />}>
      <Failure of={loaded.error} />
      {sandbox !== undefined && <Facts sandbox={sandbox} />}
      {sandbox !== undefined && sandbox.state !== "ended" && <ActsAsCode of={actsOf(sandbox)} />}
      <div class="tabs" role="tablist" aria-label="Of this sandbox">
        {TABS.map((each) => (
          <Link
            key={each.id}
            href={`${path}/${each.id}`}
            role="tab"
            aria-selected={each.id === tab}
            aria-controls="tab"
            id={`tab-${each.id}`}
          >
            {each.name}
          </Link>
        ))}
      </div>
      <section id="tab" role="tabpanel" aria-labelledby={`tab-${tab}`}>
        {sandbox !== undefined && <Shown tab={tab} sandbox={sandbox} again={again} isStopping={stopping !== "no"} />}
      </section>
    </Screen>
  );
}

interface ShownProps extends TabProps {
  readonly tab: string;
  /** What asks the sandbox's programs would be refused, so it is left before. */
  readonly isStopping: boolean;
}

function Shown({ tab: id, sandbox, again, isStopping }: ShownProps) {
  const tab = TABS.find((each) => each.id === id);
  if (tab === undefined) return <Empty title="A sandbox has no such tab." />;
  if (tab.changes === true && !may("sandboxes"))
    return <Empty title={`${tab.name}: this key may only read. It needs the scope ‘sandboxes’.`} />;
  if (tab.runs === true && sandbox.state !== "running")
    return (
      <Empty title={`The sandbox is ${sandbox.state}.`}>
        {sandbox.state === "paused" && <p>Resume it to reach its {tab.name.toLowerCase()}.</p>}
      </Empty>
    );
  if (tab.runs === true && isStopping) return <Empty title="The sandbox is being stopped." />;
  const { show: Show } = tab;
  return <Show sandbox={sandbox} again={again} />;
}

interface ActsProps extends TabProps {
  /** Does what stops the sandbox. */
  readonly stop: (work: () => Promise<void>) => Promise<void>;
}

function Acts({ sandbox, again, stop }: ActsProps) {
  const doing = useDoing();
  const [, go] = useLocation();
  const { sandboxID: id, state } = sandbox;
  const like = (
    <Link class="button" href={`/create?like=${id}`}>
      Start one like it
    </Link>
  );
  if (state === "ended")
    return (
      <>
        <span class="small">ended {time(sandbox.endedAt)}</span>
        {like}
      </>
    );
  const disabled = doing.busy || !may("sandboxes");
  const then = (work: () => Promise<void>) => () =>
    doing.run(async () => {
      await work();
      again();
    });
  const fork = () =>
    doing.run(async () => {
      const [made] = await perform<StartResult[]>(requests.fork(id));
      if (made?.sandbox === undefined) throw new Error(made?.error?.message ?? "the platform made no copy");
      go(`/sandboxes/${made.sandbox.sandboxID}`);
    });
  return (
    <>
      {state === "running" ? (
        <>
          <button type="button" disabled={disabled} onClick={then(() => perform(requests.setLife(id, LONGER_S)))}>
            One more hour
          </button>
          <button type="button" disabled={disabled} onClick={fork}>
            Fork
          </button>
          <button type="button" disabled={disabled} onClick={then(() => stop(() => pauseSandbox(id)))}>
            Pause
          </button>
        </>
      ) : (
        <button type="button" disabled={disabled} onClick={then(() => resumeSandbox(id))}>
          Resume
        </button>
      )}
      {like}
      <Danger disabled={disabled} onConfirm={then(() => stop(() => killSandbox(id)))}>
        Kill
      </Danger>
      <Failure of={doing.error} />
    </>
  );
}

/** What can be done with it now, by the names of the buttons. */
function actsOf({ sandboxID: id, state }: SandboxDetail): readonly (readonly [string, ActRequest])[] {
  return state === "running"
    ? [
        ["Pause", requests.pause(id)],
        ["One more hour", requests.setLife(id, LONGER_S)],
        ["Fork", requests.fork(id)],
        ["Take a snapshot", requests.snapshot(id, "")],
        ["Kill", requests.kill(id)],
      ]
    : [
        ["Resume", requests.resume(id)],
        ["Kill", requests.kill(id)],
      ];
}

function Facts({ sandbox }: { readonly sandbox: SandboxDetail }) {
  const { state, alias, templateID, cpuCount, memoryMB, diskSizeMB, startedAt, metadata } = sandbox;
  const facts: readonly (readonly [string, preact.ComponentChildren])[] = [
    ["State", <State key="state" of={state} />],
    [
      "Template",
      <Link key="template" href={`/templates/${templateID}`}>
        {alias ?? templateID}
      </Link>,
    ],
    ["Size", `${cpuCount} cores, ${mebibytes(memoryMB)} of memory, ${mebibytes(diskSizeMB)} of disk`],
    ["Started", time(startedAt)],
    ["Next", nextOf(sandbox)],
    ["Labels", pairs(metadata) || "none"],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** What ends the sandbox next, or has ended it. */
function nextOf({ state, endAt, lifecycle, endReason, endDetail, endedAt }: SandboxDetail): string {
  if (state === "ended") {
    const why = [endReason ?? "unknown", endDetail].filter(Boolean).join(", ");
    return `it ended at ${time(endedAt)}: ${why}${endReason === "request" ? "; the timeline tells whose" : ""}`;
  }
  if (state === "paused") return lifecycle?.autoResume === true ? "a request resumes it" : "somebody resumes it";
  const what = lifecycle?.onTimeout === "pause" ? "it is paused" : "it is killed";
  return `${what} at ${time(endAt)}, in ${span(Date.parse(endAt) - Date.now())}`;
}
