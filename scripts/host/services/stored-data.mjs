// What the keys of this machine open: counts the records that cannot be read without each key, or whose clients are locked out.
// Usage: node stored-data.mjs ORCHESTRATOR-DATABASE AGENT-DATABASE, with the URL of PostgreSQL or nothing on standard input. Prints a line "KEY<tab>what it opens" for each
// key that something needs; a database that is there and cannot be read needs all of its keys.
import { existsSync, readFileSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { Client } from "pg";

const LIMIT_MS = 10_000;

/** Keys of each database with the tables they matter to; nothing is printed for a key whose tables are all empty. */
const OPENED = {
  orchestrator: [
    { key: "SVC_SEED", tables: { sandboxes: "access tokens of sandboxes", volumes: "tokens of volumes" } },
    {
      key: "SVC_ENCRYPTION_KEY",
      tables: {
        sandboxes: "variables and network policies of sandboxes",
        builds: "settings of template builds",
        webhooks: "signing secrets of webhooks",
        identity_keys: "signing keys of identity tokens",
      },
    },
    { key: "SVC_NODE_KEY", tables: { nodes: "connections to nodes" } },
    { key: "secrets.key", tables: { secrets: "secrets of projects" } },
  ],
  agent: [
    {
      key: "SVC_NODE_ID",
      tables: {
        snapshots: "snapshots and paused sandboxes of this node",
        executions: "running sandboxes of this node",
        builds: "template builds of this node",
      },
    },
    {
      key: "seal.key",
      tables: {
        snapshots: "policies and variables of this node's snapshots and paused sandboxes",
        executions: "policies of its running sandboxes",
      },
    },
  ],
};

const [orchestratorFile, agentFile] = process.argv.slice(2);
// By standard input, because it may have a password in it.
const url = readFileSync(0, "utf8").trim();
const postgres =
  url !== ""
    ? new Client({ connectionString: url, connectionTimeoutMillis: LIMIT_MS, query_timeout: LIMIT_MS })
    : undefined;
await report("orchestrator", postgres ? fromPostgres(postgres) : fromSqlite(orchestratorFile));
await postgres?.end().catch(() => undefined);
await report("agent", fromSqlite(agentFile));

/** A function that counts the rows of a table, 0 where the table is not there; undefined without a database. */
function fromSqlite(file) {
  if (file === undefined || !existsSync(file) || statSync(file).size === 0) return undefined;
  return async (table) => {
    const database = new Database(file, { readonly: true, timeout: LIMIT_MS });
    try {
      const there = database.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(table);
      return there === undefined ? 0 : database.prepare(`select count(*) as n from ${table}`).get().n;
    } finally {
      database.close();
    }
  };
}

function fromPostgres(client) {
  let connected;
  return async (table) => {
    await (connected ??= client.connect());
    const { rows } = await client.query("select to_regclass($1) as name", [table]);
    if (rows[0].name === null) return 0;
    return Number((await client.query(`select count(*) as n from ${table}`)).rows[0].n);
  };
}

async function report(name, count) {
  if (count === undefined) return;
  for (const { key, tables } of OPENED[name]) {
    const opens = [];
    try {
      for (const [table, what] of Object.entries(tables)) {
        const rows = await count(table);
        if (rows > 0) opens.push(`${what} (${rows})`);
      }
    } catch (error) {
      opens.push(
        `what is in the ${name}'s database, which cannot be read now: ${String(error.message).split("\n")[0]}`,
      );
    }
    if (opens.length > 0) process.stdout.write(`${key}\t${opens.join(", ")}\n`);
  }
}
