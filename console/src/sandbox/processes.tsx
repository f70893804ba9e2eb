/** Programs that were started through the SDKs and this console, and an end for each; ports at which programs listen. */

import { useDoing, useLoaded } from "../base/loaded.ts";
import { Danger, Empty, Failure, Table } from "../parts/parts.tsx";
import { call, callAct } from "./envd.ts";
import { Ports } from "./ports/ports.tsx";
import type { TabProps } from "./tab.ts";

interface Process {
  readonly pid: number;
  readonly tag?: string;
  readonly config?: { readonly cmd?: string; readonly args?: readonly string[]; readonly cwd?: string };
}

const EVERY_MS = 5_000;

export function ProcessesTab({ sandbox }: TabProps) {
  const { sandboxID: id } = sandbox;
  const doing = useDoing();
  const loaded = useLoaded(
    (signal) => call<{ readonly processes?: readonly Process[] }>(id, "process.Process/List", {}, signal),
    [id],
    EVERY_MS,
  );
  const kill = (pid: number) =>
    doing.run(async () => {
      await callAct(id, "process.Process/SendSignal", { process: { pid }, signal: "SIGNAL_SIGKILL" });
      loaded.again();
    });
  const processes = loaded.value?.processes ?? [];
  return (
    <>
      <Ports sandbox={sandbox} />
      <h2>Processes</h2>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value !== undefined && processes.length === 0 && (
        <Empty title="No program runs that an SDK or this console has started." />
      )}
      {processes.length > 0 && (
        <Table
          label="Processes"
          items={processes}
          keyOf={({ pid }) => String(pid)}
          columns={[
            { name: "pid", show: ({ pid }) => pid },
            { name: "Command", show: ({ config }) => <code>{[config?.cmd, ...(config?.args ?? [])].join(" ")}</code> },
            { name: "Directory", show: ({ config }) => config?.cwd ?? "–" },
            {
              name: "Acts",
              show: ({ pid }) => (
                <Danger disabled={doing.busy} label={`Kill process ${pid}`} onConfirm={() => kill(pid)}>
                  Kill
                </Danger>
              ),
            },
          ]}
        />
      )}
    </>
  );
}
