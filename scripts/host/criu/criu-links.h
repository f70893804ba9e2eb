/* Keeps the names that CRIU gives to open files during a dump, see criu-links.c. */
#pragma once

/* Uses the current directory as the work directory of this CRIU. Only the first call counts. */
void links_work_here(void);

/* Call before a link is made at `path`: adds `path` to the list if it is such a name. Returns 0, or -1 with errno. */
int links_note(const char *path, int flags);

/* Whether this dump made `path`, so that CRIU must not remove it. */
int links_stays(const char *path);
