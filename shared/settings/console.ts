/** Settings of the web console. */

import { Type } from "typebox";

export const consoleSettings = {
  console: Type.Enum(["on", "off"], {
    default: "on",
    description: "Whether the platform API serves the web console at /console",
  }),
  consoleListen: Type.Optional(
    Type.String({
      maxLength: 261,
      pattern: "^(\\[[0-9a-fA-F:.]+\\]|[^:\\s]+):\\d{1,5}$",
      description:
        "Address and port at which the console alone listens, as 127.0.0.1:3005 or [::]:3005; default: on the port of the platform API",
    }),
  ),
  consoleHosts: Type.String({
    default: "",
    maxLength: 4096,
    pattern: "^[A-Za-z0-9.,: _-]*$",
    description:
      "Host names at which the console answers, comma-separated, beside localhost, addresses and the one of SVC_PUBLIC_URL",
  }),
  oidcIssuer: Type.Optional(
    Type.String({
      pattern: "^https?://[^?#\\s]+$",
      maxLength: 512,
      description:
        "Issuer of a provider of OpenID Connect at which people log in to the console; https, except on this machine. Needs SVC_OIDC_CLIENT_ID and SVC_OIDC_ROLES",
    }),
  ),
  oidcClientId: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description: "Client that the provider knows, with the address …/console/oidc/back of each name of the console",
    }),
  ),
  oidcClientSecret: Type.Optional(
    Type.String({ minLength: 8, maxLength: 1024, description: "Its secret; absent: a public client" }),
  ),
  oidcScope: Type.String({
    default: "openid profile email",
    pattern: "^openid( [!-~]+)*$",
    maxLength: 512,
    description: "Scopes that are asked for; some providers send groups only for one of their own",
  }),
  oidcClaim: Type.String({
    default: "groups",
    minLength: 1,
    maxLength: 256,
    description: "Claim whose values give roles; dots lead into objects (realm_access.roles), email counts if verified",
  }),
  oidcRoles: Type.String({
    default: "",
    maxLength: 16_384,
    description:
      "Who may do what: VALUE=PROJECT:ROLE, separated by semicolons, with the slug or id of a project and viewer, member or admin",
  }),
};
