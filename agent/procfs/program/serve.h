/* Answers the kernel's requests for the files of one mount. */

#ifndef SVC_SERVE_H
#define SVC_SERVE_H

#include <signal.h>
#include <stdint.h>

/* Shared by both processes, so that the one that lives on knows what the other was doing. */
struct shared {
  /* Id of the request that the server answers now, or 0. The next server refuses it after a crash, so that its reader does not wait. */
  volatile uint64_t request;
  volatile unsigned starts;
};

/* The process that waits for this one has died. */
extern volatile sig_atomic_t orphaned;

/* Answers requests until the mount is gone or the process is orphaned. */
void serve(int connection, struct shared *shared, const char *version);

/* Ends the request that a dead server left, with EIO. */
void end_request(int connection, struct shared *shared);

#endif
