/* The names that CRIU gives to open files at a dump, see criu-links.c. */
#pragma once

/* The current directory is the work directory of this CRIU, unless an earlier one was. */
void links_work_here(void);

/* Before a link is made at `path`: writes it down if it is such a name. 0, or -1 with errno. */
int links_note(const char *path, int flags);

/* Whether a name that is to be taken away was given by this dump. */
int links_stays(const char *path);
