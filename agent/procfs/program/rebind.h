/* Gives a running container the files of a new mount, in place of those of a mount whose server is gone. */

#ifndef SVC_REBIND_H
#define SVC_REBIND_H

/* container is PROCESS:ID, the process that is number 1 inside. Returns 0 when the container has the files. */
int rebind(const char *mount, const char *container);

#endif
