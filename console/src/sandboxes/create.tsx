/** Creates a sandbox, and shows beside the form the SDK's code that does the same. */

import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { CreateBody, Sandbox } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { templateApi } from "../../../shared/api/templates.ts";
import type { volumeApi } from "../../../shared/api/volumes.ts";
import { act, get, pages, type Reply } from "../base/client.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { codeOf } from "../code/code-of.ts";
import { Choice, onSubmit, TextArea, TextField } from "../parts/field.tsx";
import { Code, Failure, Screen } from "../parts/parts.tsx";

type Template = Reply<typeof templateApi.listTemplates>[number];
type Volumes = Reply<typeof volumeApi.listVolumes>;

interface Form {
  readonly template: string;
  readonly minutes: string;
  readonly cpu: string;
  readonly memory: string;
  readonly internet: string;
  readonly allowOut: string;
  readonly denyOut: string;
  readonly labels: string;
  readonly variables: string;
  readonly volume: string;
  readonly mountPath: string;
}

const EMPTY: Form = {
  template: "base",
  minutes: "5",
  cpu: "",
  memory: "",
  internet: "",
  allowOut: "",
  denyOut: "",
  labels: "",
  variables: "",
  volume: "",
  mountPath: "/mnt/volume",
};

const loadTemplates = (signal: AbortSignal) => pages<Template>("/v2/templates", signal);

export function CreateScreen() {
  const [form, setForm] = useState(EMPTY);
  const [, go] = useLocation();
  const doing = useDoing();
  const templates = useLoaded(loadTemplates, []);
  const volumes = useLoaded((signal) => get<Volumes>("/volumes", {}, signal), []);
  const set = (name: keyof Form) => (value: string) => setForm({ ...form, [name]: value });
  const body = bodyOf(form);
  const code = codeOf({ method: "POST", path: "/v2/sandboxes", body });
  const create = () =>
    doing.run(async () => {
      const made = await act<Sandbox>("POST", "/v2/sandboxes", body);
      go(`/sandboxes/${made.sandboxID}/terminal`);
    });
  const names = (templates.value ?? []).map(({ templateID, names: [name] }) => name ?? templateID);
  return (
    <Screen title="Create a sandbox">
      <div class="beside">
        <form onSubmit={onSubmit(create)}>
          <Choice
            label="Template"
            value={form.template}
            options={[...new Set(["base", ...names])].map((name) => [name, name] as const)}
            onValue={set("template")}
          />
          <TextField label="Lives for (minutes)" type="number" value={form.minutes} onValue={set("minutes")} required />
          <TextField label="CPU cores (empty: the template's)" type="number" value={form.cpu} onValue={set("cpu")} />
          <TextField
            label="Memory in MiB (empty: the template's)"
            type="number"
            value={form.memory}
            onValue={set("memory")}
          />
          <Choice
            label="Internet"
            value={form.internet}
            options={[
              ["", "as the platform has it"],
              ["no", "none"],
            ]}
            onValue={set("internet")}
          />
          <TextArea
            label="May reach (a line each: domain, address, range)"
            rows={2}
            value={form.allowOut}
            onValue={set("allowOut")}
          />
          <TextArea
            label="May not reach (a line each: address, range)"
            rows={2}
            value={form.denyOut}
            onValue={set("denyOut")}
          />
          <TextArea label="Labels (name=value, a line each)" rows={2} value={form.labels} onValue={set("labels")} />
          <TextArea
            label="Variables (NAME=value, a line each)"
            rows={2}
            value={form.variables}
            onValue={set("variables")}
          />
          <Choice
            label="Volume"
            value={form.volume}
            options={[["", "none"], ...(volumes.value ?? []).map(({ name }) => [name, name] as const)]}
            onValue={set("volume")}
          />
          {form.volume !== "" && <TextField label="Mounted at" value={form.mountPath} onValue={set("mountPath")} />}
          <button type="submit" class="main" disabled={doing.busy || !may("sandboxes")}>
            Create
          </button>
          <Failure of={doing.error ?? templates.error ?? volumes.error} />
        </form>
        <div>
          <Code label="TypeScript" text={code?.typescript ?? ""} />
          <Code label="Python" text={code?.python ?? ""} />
          {code?.svc !== undefined && <Code label="svc" text={code.svc} />}
          <Code label="HTTP" text={code?.http ?? ""} />
        </div>
      </div>
    </Screen>
  );
}

function bodyOf(form: Form): CreateBody {
  const allowOut = lines(form.allowOut);
  const denyOut = lines(form.denyOut);
  const metadata = fromLines(form.labels);
  const envVars = fromLines(form.variables);
  return {
    templateID: form.template,
    timeout: Math.round(Number(form.minutes) * 60),
    ...(form.cpu === "" ? {} : { cpuCount: Number(form.cpu) }),
    ...(form.memory === "" ? {} : { memoryMB: Number(form.memory) }),
    ...(form.internet === "no" ? { allow_internet_access: false } : {}),
    ...(allowOut.length + denyOut.length === 0
      ? {}
      : { network: { ...(allowOut.length > 0 ? { allowOut } : {}), ...(denyOut.length > 0 ? { denyOut } : {}) } }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(Object.keys(envVars).length === 0 ? {} : { envVars }),
    ...(form.volume === "" ? {} : { volumeMounts: [{ name: form.volume, path: form.mountPath }] }),
  };
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

function fromLines(text: string): Record<string, string> {
  return Object.fromEntries(
    lines(text).map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}
