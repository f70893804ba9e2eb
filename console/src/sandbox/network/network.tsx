/** What the sandbox may reach: its rules, a question to them, and what they have decided, with the reason of each refusal. */

import { useState } from "preact/hooks";
import type { NetworkDecision, NetworkVerdict } from "../../../../shared/api/sandboxes/sandbox-network.ts";
import { get } from "../../base/client.ts";
import { bytes, time } from "../../base/format.ts";
import { useDoing, useLoaded } from "../../base/loaded.ts";
import { CheckField, onSubmit, TextField } from "../../parts/field.tsx";
import { Empty, Failure, State, Table } from "../../parts/parts.tsx";
import type { TabProps } from "../tab.ts";
import { Rules } from "./rules.tsx";

const EVERY_MS = 3_000;

interface Log {
  readonly entries: readonly NetworkDecision[];
  readonly suppressed: number;
}

export function NetworkTab({ sandbox, again }: TabProps) {
  const path = `/sandboxes/${sandbox.sandboxID}/network`;
  const log = useLoaded((signal) => get<Log>(`${path}/log`, { limit: 500, ended: true }, signal), [path], EVERY_MS);
  const [refusedOnly, setRefusedOnly] = useState(false);
  const all = log.value?.entries ?? [];
  const entries = all.filter(({ verdict }) => !refusedOnly || verdict === "deny").reverse();
  return (
    <>
      {sandbox.state === "running" && (
        <div class="beside">
          <Rules key={policyOf(sandbox)} sandbox={sandbox} again={again} />
          <Check path={path} />
        </div>
      )}
      <h2>Decisions</h2>
      <Failure of={log.error} />
      {(log.value?.suppressed ?? 0) > 0 && (
        <p class="small">{log.value?.suppressed} more are not listed, because there were too many.</p>
      )}
      {all.length > 0 && <CheckField label="Refused only" checked={refusedOnly} onChecked={setRefusedOnly} />}
      {log.value !== undefined && entries.length === 0 && (
        <Empty
          title={
            all.length === 0 ? "The sandbox has opened no connection yet." : "None of its connections was refused."
          }
        />
      )}
      {entries.length > 0 && (
        <Table
          label="Decisions about connections"
          items={entries}
          keyOf={({ timestamp, protocol, destination, port, name, rule }) =>
            [timestamp, protocol, destination, port, name, rule].join(" ")
          }
          columns={[
            { name: "When", show: ({ timestamp }) => time(timestamp) },
            { name: "Verdict", show: ({ verdict }) => <State of={verdict} /> },
            {
              name: "To",
              show: ({ protocol, name, destination, port }) => `${protocol} ${name ?? destination}:${port}`,
            },
            { name: "Rule", show: ({ rule }) => <code>{rule}</code> },
            { name: "Why", show: ({ reason }) => reason ?? "–" },
            { name: "Times", show: ({ count }) => count },
            {
              name: "Sent / received",
              show: ({ sentBytes, receivedBytes }) => `${bytes(sentBytes)} / ${bytes(receivedBytes)}`,
            },
          ]}
        />
      )}
    </>
  );
}

/** The editor begins again with what is in force, as soon as that is another policy. */
function policyOf({ network, allowInternetAccess }: TabProps["sandbox"]): string {
  return JSON.stringify([network, allowInternetAccess]);
}

function Check({ path }: { readonly path: string }) {
  const [host, setHost] = useState("");
  const [port, setPort] = useState("443");
  const [verdict, setVerdict] = useState<NetworkVerdict | undefined>(undefined);
  const doing = useDoing();
  const ask = () =>
    doing.run(async () => {
      setVerdict(undefined);
      setVerdict(await get<NetworkVerdict>(`${path}/check`, { host, port: Number(port) }));
    });
  return (
    <form onSubmit={onSubmit(ask)}>
      <h2>May it reach …?</h2>
      <TextField label="Host" value={host} onValue={setHost} required placeholder="pypi.org" />
      <TextField label="Port" type="number" value={port} onValue={setPort} required />
      <button type="submit" disabled={doing.busy}>
        Check
      </button>
      {verdict !== undefined && (
        <p role="status">
          <State of={verdict.verdict} /> {verdict.reason} <code>{verdict.rule}</code>
        </p>
      )}
      <Failure of={doing.error} />
    </form>
  );
}
