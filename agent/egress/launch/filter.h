/* The seccomp filter of the egress process. */

#ifndef SVC_EGRESS_FILTER_H
#define SVC_EGRESS_FILTER_H

/* Limits this process to the calls that a Node program with sockets makes; any other call gets ENOSYS or EPERM. The only
 * exec allowed is execveat of this descriptor with this pointer as its path. Returns 0, or -1 with errno. */
int filter_calls(int program, const char *name);

#endif
