/** Snapshots of the sandbox: taken here, and what was started from them, as a tree. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { Sandbox, SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { act, perform } from "../../base/client.ts";
import { bytes, time } from "../../base/format.ts";
import { type Doing, useDoing, useLoaded } from "../../base/loaded.ts";
import { may } from "../../base/session.ts";
import { onSubmit, TextField } from "../../parts/field.tsx";
import { Danger, Empty, Failure, Table } from "../../parts/parts.tsx";
import { requests } from "../../sandboxes/requests.ts";
import { startedFromSnapshot } from "../../stored/dependents.ts";
import { DependsOn } from "../../stored/depends-on.tsx";
import type { TabProps } from "../tab.ts";
import type { SandboxNode, Snapshot, SnapshotNode } from "./lineage.ts";
import { type Lineage, loadLineage } from "./load-lineage.ts";
import { Rewind } from "./rewind.tsx";
import { earlierStates } from "./states.ts";

export function SnapshotsTab({ sandbox, again }: TabProps) {
  const { sandboxID: id, state } = sandbox;
  const [name, setName] = useState("");
  const doing = useDoing();
  const loaded = useLoaded((signal) => loadLineage(id, signal), [id]);
  const take = () =>
    doing.run(async () => {
      await perform(requests.snapshot(id, name));
      setName("");
      loaded.again();
    });
  const lineage = loaded.value;
  const from = lineage?.origins[0];
  const rewound = () => {
    again();
    loaded.again();
  };
  return (
    <>
      {state === "running" && (
        <form class="bar" onSubmit={onSubmit(take)}>
          <TextField label="Name (may be empty)" value={name} onValue={setName} />
          <button type="submit" disabled={doing.busy || !may("sandboxes")}>
            Take a snapshot
          </button>
        </form>
      )}
      <Failure of={loaded.error ?? doing.error} />
      {from !== undefined && (
        <p>
          Started from <code>{from.snapshotID}</code>
          {from.sourceSandboxID !== undefined && (
            <>
              , a snapshot of <SandboxLink id={from.sourceSandboxID} />
            </>
          )}
          .
        </p>
      )}
      {lineage?.root.snapshots.length === 0 && (
        <Empty title="No snapshot was taken of this sandbox.">
          {state === "running" && <p>Take one before work that may go wrong: the sandbox can be put back to it.</p>}
        </Empty>
      )}
      {lineage !== undefined && (
        <Branches
          of={lineage.root}
          again={loaded.again}
          label="Snapshots of this sandbox"
          rewindable={{ sandbox, lineage, rewound }}
        />
      )}
      {lineage !== undefined && <Earlier of={{ sandbox, lineage, rewound }} />}
      {lineage?.isWhole === false && <p class="small">The tree is larger; this is its beginning.</p>}
    </>
  );
}

/** The sandbox of the tab, which can be put back to its own snapshots. */
interface Rewindable {
  readonly sandbox: SandboxDetail;
  readonly lineage: Lineage;
  readonly rewound: () => void;
}

/** States of the sandboxes that this one comes from: it can be put back to them too. */
function Earlier({ of: rewindable }: { readonly of: Rewindable }) {
  const { origins, snapshots } = rewindable.lineage;
  const states = earlierStates(origins, snapshots);
  if (states.length === 0) return null;
  return (
    <>
      <h2>Before it was started</h2>
      <ul class="tree" aria-label="States before this sandbox was started">
        {states.map((snapshot) => (
          <li key={snapshot.buildID}>
            <Line
              text={
                <>
                  <time>{time(snapshot.createdAt)}</time> <code>{snapshot.snapshotID}</code>
                </>
              }
            />
            <RewindTo snapshot={snapshot} of={rewindable} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** The button, and what it asks. */
function RewindTo({
  snapshot,
  of: { sandbox, lineage, rewound },
}: {
  readonly snapshot: Snapshot;
  readonly of: Rewindable;
}) {
  const [isAsking, setAsking] = useState(false);
  const { sandboxID: id, state } = sandbox;
  if (state !== "running" && state !== "paused") return null;
  const last = lineage.rewinds.find(({ buildID }) => buildID === snapshot.buildID);
  return (
    <>
      {last !== undefined && <p class="small">The sandbox was put back to it at {time(last.at)}.</p>}
      {!isAsking && (
        <button
          type="button"
          disabled={!may("sandboxes")}
          aria-label={`Rewind ${id} to ${snapshot.snapshotID}`}
          onClick={() => setAsking(true)}
        >
          Rewind to it
        </button>
      )}
      {isAsking && (
        <Rewind
          sandbox={sandbox}
          to={snapshot}
          snapshots={lineage.snapshots}
          close={() => setAsking(false)}
          done={() => {
            setAsking(false);
            rewound();
          }}
        />
      )}
    </>
  );
}

function Branches(props: {
  readonly of: SandboxNode;
  readonly again: () => void;
  readonly label?: string;
  readonly rewindable?: Rewindable;
}) {
  const { of: sandbox, again, label, rewindable } = props;
  if (sandbox.snapshots.length === 0) return null;
  return (
    <ul class="tree" aria-label={label ?? `Snapshots of ${sandbox.id}`}>
      {sandbox.snapshots.map((node) => (
        <SnapshotBranch key={node.snapshot.buildID} node={node} again={again} rewindable={rewindable} />
      ))}
    </ul>
  );
}

function SnapshotBranch(props: {
  readonly node: SnapshotNode;
  readonly again: () => void;
  readonly rewindable: Rewindable | undefined;
}) {
  const { node, again, rewindable } = props;
  const { snapshot, ids, sandboxes } = node;
  const doing = useDoing();
  return (
    <li>
      <Line
        text={
          <>
            <time>{time(snapshot.createdAt)}</time> <code>{ids.join(", ")}</code>{" "}
            {snapshot.storedBytes !== undefined && <span class="small">{bytes(snapshot.storedBytes)}</span>}
          </>
        }
      >
        <Acts snapshot={snapshot} doing={doing} again={again} />
      </Line>
      {rewindable !== undefined && <RewindTo snapshot={snapshot} of={rewindable} />}
      <Failure of={doing.error} />
      {sandboxes.length > 0 && (
        <ul class="tree" aria-label={`Sandboxes from ${snapshot.snapshotID}`}>
          {sandboxes.map((each) => (
            <li key={each.id}>
              <Line
                text={
                  <>
                    <time>{time(each.startedAt)}</time> sandbox <SandboxLink id={each.id} />
                  </>
                }
              />
              <Branches of={each} again={again} />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Line({ text, children }: { readonly text: ComponentChildren; readonly children?: ComponentChildren }) {
  return (
    <div class="leaf">
      <span>{text}</span>
      {children}
    </div>
  );
}

function SandboxLink({ id }: { readonly id: string }) {
  return <Link href={`/sandboxes/${id}/snapshots`}>{id}</Link>;
}

interface ActsProps {
  readonly snapshot: Snapshot;
  readonly doing: Doing;
  readonly again: () => void;
  /** Somebody is about to delete it. */
  readonly onAsk?: () => void;
}

function Acts({ snapshot: { snapshotID }, doing, again, onAsk }: ActsProps) {
  const [, go] = useLocation();
  const start = () =>
    doing.run(async () => {
      const made = await act<Sandbox>("POST", "/v2/sandboxes", { templateID: snapshotID });
      go(`/sandboxes/${made.sandboxID}`);
    });
  const remove = () =>
    doing.run(async () => {
      await act("DELETE", `/templates/${encodeURIComponent(snapshotID)}`);
      again();
    });
  const disabled = doing.busy || !may("sandboxes");
  return (
    <span class="acts">
      <button type="button" disabled={disabled} aria-label={`Start from it: ${snapshotID}`} onClick={start}>
        Start from it
      </button>
      <Danger
        disabled={doing.busy || !may("templates")}
        label={`Delete ${snapshotID}`}
        onConfirm={remove}
        {...(onAsk === undefined ? {} : { onAsk })}
      >
        Delete
      </Danger>
    </span>
  );
}

export function SnapshotTable({ items, again }: { readonly items: readonly Snapshot[]; readonly again: () => void }) {
  const doing = useDoing();
  const [asked, ask] = useState<Snapshot | undefined>(undefined);
  return (
    <>
      <Failure of={doing.error} />
      {items.length > 0 && (
        <Table
          label="Snapshots"
          items={items}
          keyOf={({ snapshotID }) => snapshotID}
          columns={[
            { name: "Snapshot", show: ({ snapshotID }) => <code>{snapshotID}</code> },
            { name: "Taken", show: ({ createdAt }) => time(createdAt) },
            {
              name: "Of",
              show: ({ sourceSandboxID: id }) => (id === undefined ? "–" : <SandboxLink id={id} />),
            },
            { name: "Stored", show: ({ storedBytes }) => (storedBytes === undefined ? "–" : bytes(storedBytes)) },
            {
              name: "Acts",
              show: (snapshot) => <Acts snapshot={snapshot} doing={doing} again={again} onAsk={() => ask(snapshot)} />,
            },
          ]}
        />
      )}
      {asked !== undefined && items.some(({ snapshotID }) => snapshotID === asked.snapshotID) && (
        <DependsOn key={asked.snapshotID} name={asked.snapshotID} load={(signal) => startedFromSnapshot(asked, signal)}>
          A snapshot is not deleted while a sandbox that was started from it runs or is paused.
        </DependsOn>
      )}
    </>
  );
}
