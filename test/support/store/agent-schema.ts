/** Takes the newest steps of the agent's schema back, for tests that make a file of an earlier version. */

export const LATER = `alter table layers drop column context; drop table served_store; drop table remains;
  alter table executions drop column record;
  alter table snapshots drop column record; alter table snapshots drop column held_since;
  alter table snapshots drop column held_until; alter table snapshots drop column held_reason;`;
