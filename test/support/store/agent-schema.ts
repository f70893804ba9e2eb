/** Takes the newest step of the agent's schema back, for tests that make a file of an earlier version. */

export const LATER = `drop table served_store; alter table executions drop column record;
  alter table snapshots drop column record; alter table snapshots drop column held_since;
  alter table snapshots drop column held_until; alter table snapshots drop column held_reason;`;
