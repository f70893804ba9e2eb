/**
 * Wraps a database dialect so that a change and its audit entry are one transaction, whichever store makes the change:
 * before the commit of the first transaction in which a request changed a row, the entry is appended; a statement outside
 * a transaction gets one. When the entry cannot be written, the change is rolled back.
 */

import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  DummyDriver,
  Kysely,
  type QueryResult,
  type TransactionSettings,
} from "kysely";
import type { Tables } from "../tables.ts";
import { type Appender, createAppender } from "./append.ts";
import { type AuditScope, owingScope } from "./scope.ts";
import { added, writes } from "./statement.ts";

export function auditedDialect(inner: Dialect): Dialect {
  const dialect = {
    createAdapter: () => inner.createAdapter(),
    createIntrospector: (db: Parameters<Dialect["createIntrospector"]>[0]) => inner.createIntrospector(db),
    createQueryCompiler: () => inner.createQueryCompiler(),
  };
  const builder = new Kysely<Tables>({ dialect: { ...dialect, createDriver: () => new DummyDriver() } });
  return { ...dialect, createDriver: () => auditedDriver(inner.createDriver(), createAppender(builder)) };
}

function auditedDriver(driver: Driver, appender: Appender): Driver {
  const connections = new WeakMap<DatabaseConnection, AuditedConnection>();
  const inner = (connection: DatabaseConnection) => (connection as AuditedConnection).inner;
  return {
    init: () => driver.init(),
    destroy: () => driver.destroy(),
    async acquireConnection() {
      const connection = await driver.acquireConnection();
      const known = connections.get(connection);
      if (known !== undefined) return known;
      const audited = new AuditedConnection(connection, driver, appender);
      connections.set(connection, audited);
      return audited;
    },
    releaseConnection: (connection) => driver.releaseConnection(inner(connection)),
    beginTransaction: (connection, settings) => (connection as AuditedConnection).begin(settings),
    commitTransaction: (connection) => (connection as AuditedConnection).commit(),
    rollbackTransaction: (connection) => (connection as AuditedConnection).rollback(),
  };
}

function hasEnded(error: unknown): boolean {
  return error instanceof Error && error.message.includes("no transaction is active");
}

class AuditedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  readonly #driver: Driver;
  readonly #appender: Appender;
  #inTransaction = false;
  #changed = false;

  constructor(inner: DatabaseConnection, driver: Driver, appender: Appender) {
    this.inner = inner;
    this.#driver = driver;
    this.#appender = appender;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const scope = owingScope();
    if (scope === undefined || !writes(query)) return this.inner.executeQuery<R>(query);
    scope.learn(added(query, scope.table));
    if (this.#inTransaction) return this.#change<R>(query);
    await this.begin({});
    try {
      const result = await this.#change<R>(query);
      await this.commit();
      return result;
    } catch (error) {
      await this.rollback();
      throw error;
    }
  }

  streamQuery<R>(query: CompiledQuery, chunkSize?: number): AsyncIterableIterator<QueryResult<R>> {
    return this.inner.streamQuery<R>(query, chunkSize);
  }

  async begin(settings: TransactionSettings): Promise<void> {
    await this.#driver.beginTransaction(this.inner, settings);
    this.#inTransaction = true;
    this.#changed = false;
  }

  async commit(): Promise<void> {
    const scope = owingScope();
    const seq = scope === undefined || !this.#changed ? undefined : await this.#append(scope);
    await this.#driver.commitTransaction(this.inner);
    this.#inTransaction = false;
    if (seq !== undefined) scope?.wrote(seq);
  }

  async rollback(): Promise<void> {
    this.#inTransaction = false;
    try {
      await this.#driver.rollbackTransaction(this.inner);
    } catch (error) {
      // SQLite ends a transaction by itself when its disk is full or fails; the caller needs that error, not this one.
      if (!hasEnded(error)) throw error;
    }
  }

  async #change<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const result = await this.inner.executeQuery<R>(query);
    // A conditional statement that found no row has changed nothing.
    if ((result.numAffectedRows ?? 0n) > 0n || result.rows.length > 0) this.#changed = true;
    return result;
  }

  #append(scope: AuditScope): Promise<number> {
    return this.#appender.append((query) => this.inner.executeQuery(query), [scope.entry()]);
  }
}
