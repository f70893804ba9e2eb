/** What an operator does with a project as a whole: disables, bans, takes back, ends what runs, deletes. Each act names what it does. */

import { useState } from "preact/hooks";
import type { adminApi } from "../../../../shared/api/admin.ts";
import type { Project } from "../../../../shared/api/projects/projects.ts";
import { act, get, type Reply } from "../../base/client.ts";
import { useDoing, useLoaded } from "../../base/loaded.ts";
import { operatorProject } from "../../base/session.ts";
import { TextField } from "../../parts/field.tsx";
import { Danger, Failure } from "../../parts/parts.tsx";
import { meaningOf, type Standing } from "./words.ts";

type Killed = Reply<typeof adminApi.killTeamSandboxes>;
type Cancelled = Reply<typeof adminApi.cancelBuilds>;

interface StandingProps {
  readonly project: Project;
  readonly path: string;
  readonly again: () => void;
}

export function StandingOfProject({ project, path, again }: StandingProps) {
  const { teamID, name, status } = project;
  const [reason, setReason] = useState("");
  const [asked, ask] = useState<Standing | undefined>(undefined);
  const [note, setNote] = useState("");
  const doing = useDoing();
  const counts = useLoaded(
    (signal) => get<Record<string, number>>("/admin/sandboxes/running-counts", {}, signal),
    [],
    10_000,
  );
  const running = counts.value === undefined ? undefined : (counts.value[teamID] ?? 0);
  const run = (work: () => Promise<string>) =>
    doing.run(async () => {
      setNote("");
      setNote(await work());
      ask(undefined);
      counts.again();
      again();
    });
  const set = (to: "disable" | "ban" | "enable") =>
    run(async () => {
      const told = reason.trim() === "" ? {} : { reason: reason.trim() };
      await act("POST", `${path}/${to}`, to === "enable" ? undefined : told);
      setReason("");
      return to === "enable" ? "The project may do again what its keys may." : "The project’s next call is refused.";
    });
  const kill = () =>
    run(async () => {
      const done = await act<Killed>("POST", `/admin/teams/${teamID}/sandboxes/kill`);
      const ended = done.killedCount === 1 ? "sandbox has" : "sandboxes have";
      return `${done.killedCount} ${ended} ended${failed(done.failedCount)}.`;
    });
  const cancel = () =>
    run(async () => {
      const done = await act<Cancelled>("POST", `/admin/teams/${teamID}/builds/cancel`);
      const ended = done.cancelledCount === 1 ? "build was" : "builds were";
      return `${done.cancelledCount} ${ended} cancelled${failed(done.failedCount)}.`;
    });
  const remove = () =>
    run(async () => {
      await act("DELETE", path);
      // The other screens would ask for what is being removed.
      if (operatorProject.value === teamID) operatorProject.value = undefined;
      return "";
    });
  const button = (which: Standing, text: string, onConfirm: () => void, disabled = false) => (
    <Danger key={which} disabled={doing.busy || disabled} onAsk={() => ask(which)} onConfirm={onConfirm}>
      {text}
    </Danger>
  );
  return (
    <section aria-label="What an operator may do">
      <h2>What an operator may do</h2>
      <div class="bar">
        {status !== "banned" && <TextField label="Reason, shown to its callers" value={reason} onValue={setReason} />}
        {status === "active" && button("disable", "Disable", () => set("disable"), reason.trim() === "")}
        {status !== "banned" && button("ban", "Ban", () => set("ban"))}
        {status !== "active" && (
          <button type="button" disabled={doing.busy} onClick={() => set("enable")}>
            Take it back
          </button>
        )}
        {button("kill", "Kill its sandboxes", kill)}
        {button("cancel", "Cancel its builds", cancel)}
        {button("delete", "Delete the project", remove)}
      </div>
      {asked !== undefined && <p role="status">{meaningOf(asked, { name, running })}</p>}
      <p class="small" role="status">
        {note}
      </p>
      <Failure of={doing.error} />
    </section>
  );
}

function failed(count: number): string {
  return count === 0 ? "" : `, and ${count} could not be ended: try again, or look at their node`;
}
