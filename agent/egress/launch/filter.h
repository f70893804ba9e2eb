/* The seccomp filter of the egress process. */

#ifndef SVC_EGRESS_FILTER_H
#define SVC_EGRESS_FILTER_H

/* From here on this process makes the calls that a Node program with sockets makes, and no other; the rest does not exist
 * (ENOSYS) or is refused. No program is started any more, except by execveat of this descriptor with this very string as
 * its name. 0, or -1 with errno. */
int filter_calls(int program, const char *name);

#endif
