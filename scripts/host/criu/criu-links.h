/* The names that CRIU gives to open files at a dump, see criu-links.c. */
#pragma once

/* The current directory is the work directory of this CRIU, unless an earlier one was. */
void links_work_here(void);

/* Called before a link is made at `path`: adds it to the list if it is such a name. Returns 0, or -1 with errno. */
int links_note(const char *path, int flags);

/* Whether this dump made the name that CRIU wants to remove. */
int links_stays(const char *path);
