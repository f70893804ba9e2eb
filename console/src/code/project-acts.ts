/** Acts on what a project has beside sandboxes, and on nodes, in code. Pure. */

import type { Act, Told } from "./act.ts";
import { word } from "./literals.ts";
import { sdkPython, sdkTypescript } from "./requests.ts";

const text = (value: string) => JSON.stringify(value);

/** With a class of the SDK that both languages have. */
function withSdk(title: string, svc: string, of: { readonly name: string; readonly call: string }): Told {
  const call = `${of.name}.${of.call}`;
  return { title, svc, typescript: sdkTypescript(of.name, `await ${call};`), python: sdkPython(of.name, {}, call) };
}

/** The code reads the value from the environment. */
function secretStored(title: string, svc: string, call: string, name: string): Told {
  return {
    title,
    svc: `${svc} < ./secret-value`,
    typescript: sdkTypescript("Secret", `await Secret.${call}(${text(name)}, process.env.SECRET_VALUE!);`),
    python: `import os\n\nfrom e2b import Secret\n\nSecret.${call}(${text(name)}, os.environ["SECRET_VALUE"])`,
  };
}

const STORED: readonly Act[] = [
  {
    method: "DELETE",
    path: "/templates/:id",
    tell: ([id = ""]) => ({ title: `Delete ${id}`, svc: `svc template delete ${word(id)}` }),
  },
  {
    method: "POST",
    path: "/templates/tags",
    tell: (_ids, body) => ({
      title: `Tag ${body.text("target")}`,
      svc: `svc template tag ${word(body.text("target"))} ${body.texts("tags").map(word).join(" ")}`,
    }),
  },
  {
    method: "DELETE",
    path: "/templates/tags",
    tell: (_ids, body) => {
      const name = body.text("name");
      const tags = body.texts("tags").map((tag) => word(`${name}:${tag}`));
      return { title: `Take a tag off ${name}`, svc: `svc template delete ${tags.join(" ")}` };
    },
  },
  {
    method: "POST",
    path: "/secrets",
    tell: (_ids, body) => {
      const name = body.text("name");
      return secretStored(`Store the secret ${name}`, `svc secret create ${word(name)}`, "create", name);
    },
  },
  {
    method: "POST",
    path: "/secrets/:id",
    tell: ([id = ""]) => secretStored(`Replace the secret ${id}`, `svc secret update ${word(id)}`, "update", id),
  },
  {
    method: "DELETE",
    path: "/secrets/:id",
    tell: ([id = ""]) =>
      withSdk(`Delete the secret ${id}`, `svc secret delete ${word(id)}`, {
        name: "Secret",
        call: `destroy(${text(id)})`,
      }),
  },
  {
    method: "POST",
    path: "/volumes",
    tell: (_ids, body) => {
      const name = body.text("name");
      return withSdk(`Create the volume ${name}`, `svc volume create ${word(name)}`, {
        name: "Volume",
        call: `create(${text(name)})`,
      });
    },
  },
  {
    method: "DELETE",
    path: "/volumes/:id",
    tell: ([id = ""]) =>
      withSdk(`Delete the volume ${id}`, `svc volume delete ${word(id)}`, {
        name: "Volume",
        call: `destroy(${text(id)})`,
      }),
  },
];

const PROJECT: readonly Act[] = [
  {
    method: "POST",
    path: "/api-keys",
    tell: (_ids, body) => {
      const scopes = body.texts("scopes").map((scope) => ` --scope ${word(scope)}`);
      const until = body.text("expiresAt");
      return {
        title: `Make the API key ${body.text("name")}`,
        // The command takes how long it is until then, and not a date.
        ...(until === "" ? { svc: `svc key create ${word(body.text("name"))}${scopes.join("")}` } : {}),
      };
    },
  },
  {
    method: "DELETE",
    path: "/api-keys/:id",
    tell: ([id = ""]) => ({ title: `Revoke the API key ${id}`, svc: `svc key delete ${word(id)}` }),
  },
  {
    method: "POST",
    path: "/events/webhooks",
    tell: (_ids, body) => {
      const name = body.text("name");
      const events = body.texts("events").map((event) => ` --event ${word(event)}`);
      const command = `svc webhook create ${word(name)} ${word(body.text("url"))}${events.join("")}`;
      return { title: `Create the webhook ${name}`, svc: `${command} --secret-file ./signature-secret` };
    },
  },
  {
    method: "POST",
    path: "/events/webhooks/:id/test",
    tell: ([id = ""]) => ({ title: `Test the webhook ${id}`, svc: `svc webhook test ${word(id)}` }),
  },
  {
    method: "PATCH",
    path: "/events/webhooks/:id",
    tell: ([id = ""], { fields: { enabled } }) => ({
      title: `${enabled === true ? "Enable" : "Disable"} the webhook ${id}`,
      svc: `svc webhook set ${word(id)} --${enabled === true ? "enable" : "disable"}`,
    }),
  },
  {
    method: "DELETE",
    path: "/events/webhooks/:id",
    tell: ([id = ""]) => ({ title: `Delete the webhook ${id}`, svc: `svc webhook delete ${word(id)}` }),
  },
  {
    method: "POST",
    path: "/events/webhooks/:id/deliveries/:delivery/redeliver",
    tell: ([id = "", delivery = ""]) => ({
      title: `Send ${delivery} again`,
      svc: `svc webhook redeliver ${word(id)} ${word(delivery)}`,
    }),
  },
];

const NODES: readonly Act[] = [
  {
    method: "POST",
    path: "/nodes/:id",
    tell: ([id = ""], body) =>
      body.text("status") === "draining"
        ? { title: `Cordon ${id}`, svc: `svc node cordon ${word(id)}` }
        : { title: `Take ${id} back`, svc: `svc node uncordon ${word(id)}` },
  },
  {
    method: "POST",
    path: "/nodes/:id/drain",
    tell: ([id = ""], body) => {
      const options = [
        ...(body.has("deadlineSeconds") ? [`--deadline ${body.number("deadlineSeconds")}s`] : []),
        ...(body.text("running") === "finish" ? ["--finish"] : []),
        ...(body.has("atDeadline") ? [`--at-deadline ${word(body.text("atDeadline"))}`] : []),
      ];
      return { title: `Drain ${id}`, svc: ["svc node drain", word(id), ...options].join(" ") };
    },
  },
];

export const PROJECT_ACTS: readonly Act[] = [...STORED, ...PROJECT, ...NODES];
