/** Creates a sandbox, and shows beside the form the SDK's code that does the same. */

import { useState } from "preact/hooks";
import { Link, useLocation, useSearchParams } from "wouter-preact";
import type { Sandbox, SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { Secret } from "../../../shared/api/secrets.ts";
import type { templateApi } from "../../../shared/api/templates.ts";
import type { volumeApi } from "../../../shared/api/volumes/volumes.ts";
import { act, get, pages, type Reply } from "../base/client.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { codeOf } from "../code/code-of.ts";
import { Choice, onSubmit, TextArea, TextField } from "../parts/field.tsx";
import { Code, Empty, Failure, Screen } from "../parts/parts.tsx";
import { bodyOf, type CreateForm, EMPTY_FORM, formLike } from "./create-body.ts";

type Template = Reply<typeof templateApi.listTemplates>[number];
type Volumes = Reply<typeof volumeApi.listVolumes>;

const loadTemplates = (signal: AbortSignal) => pages<Template>("/v2/templates", signal);

/** With `?like=ID` in the address: one that is like that sandbox, which may have ended. */
export function CreateScreen() {
  const like = useSearchParams()[0].get("like");
  return (
    <Screen title="Create a sandbox">
      {like === null ? <Form key="" start={EMPTY_FORM} /> : <FormLike key={like} id={like} />}
    </Screen>
  );
}

function FormLike({ id }: { readonly id: string }) {
  const loaded = useLoaded(
    async (signal) => {
      const model = await get<SandboxDetail>(`/sandboxes/${encodeURIComponent(id)}`, { ended: true }, signal);
      const templates = await loadTemplates(signal);
      return formLike(
        model,
        templates.find(({ templateID }) => templateID === model.templateID),
      );
    },
    [id],
  );
  const found = loaded.value;
  if (loaded.error !== undefined)
    return (
      <>
        <Failure of={loaded.error} />
        <Empty title={`The sandbox ${id} cannot be read.`}>
          <Link href="/create">Begin with an empty form</Link>
        </Empty>
      </>
    );
  if (found === undefined) return null;
  return (
    <>
      <p class="small">
        Filled in from <Link href={`/sandboxes/${id}`}>{id}</Link>. Not taken over: {found.left.join("; ")}.
      </p>
      <Form start={found.form} />
    </>
  );
}

function Form({ start }: { readonly start: CreateForm }) {
  const [form, setForm] = useState(start);
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
    <div class="beside">
      <form onSubmit={onSubmit(create)}>
        <Choice
          label="Template"
          value={form.template}
          options={[...new Set(["base", ...names, start.template])].map((name) => [name, name] as const)}
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
