/** Creates a sandbox, and shows beside the form the SDK's code that does the same. */

import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Sandbox } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { Secret } from "../../../shared/api/secrets.ts";
import type { templateApi } from "../../../shared/api/templates.ts";
import type { volumeApi } from "../../../shared/api/volumes.ts";
import { act, get, pages, type Reply } from "../base/client.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { codeOf } from "../code/code-of.ts";
import { Choice, onSubmit, TextArea, TextField } from "../parts/field.tsx";
import { Code, Failure, Screen } from "../parts/parts.tsx";
import { bodyOf, type CreateForm, EMPTY_FORM } from "./create-body.ts";

type Template = Reply<typeof templateApi.listTemplates>[number];
type Volumes = Reply<typeof volumeApi.listVolumes>;

const loadTemplates = (signal: AbortSignal) => pages<Template>("/v2/templates", signal);

export function CreateScreen() {
  const [form, setForm] = useState(EMPTY_FORM);
  const [, go] = useLocation();
  const doing = useDoing();
  const templates = useLoaded(loadTemplates, []);
  const volumes = useLoaded((signal) => get<Volumes>("/volumes", {}, signal), []);
  const set = (name: keyof CreateForm) => (value: string) => setForm({ ...form, [name]: value });
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
          <SecretFields form={form} set={set} />
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

/** A secret that the platform puts into requests to one host, outside the sandbox. */
function SecretFields(props: {
  readonly form: CreateForm;
  readonly set: (name: keyof CreateForm) => (value: string) => void;
}) {
  const { form, set } = props;
  const { value: secrets = [], error } = useLoaded((signal) => pages<Secret>("/secrets", signal), []);
  return (
    <>
      <Choice
        label="Secret for requests to a host"
        value={form.secret}
        options={[["", "none"], ...secrets.map(({ name }) => [name, name] as const)]}
        onValue={set("secret")}
      />
      <Failure of={error} />
      {form.secret !== "" && (
        <>
          <TextField label="Host that gets it" value={form.secretHost} onValue={set("secretHost")} required />
          <TextField label="In the header" value={form.secretHeader} onValue={set("secretHeader")} required />
        </>
      )}
    </>
  );
}
