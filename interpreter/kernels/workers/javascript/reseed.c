/* A module for Node: gives the generator of OpenSSL, from which Node's `crypto` draws, new entropy of the kernel. Node itself
 * has no such function. Needs no header and no library: Node's program has all names, those of its stable interface too. */

#include <stddef.h>

typedef void *handle;
typedef handle (*callback)(handle environment, handle call);
/* `auto length` of the interface: the text ends with a 0. */
#define TO_THE_END ((size_t)-1)

extern int napi_create_function(handle, const char *, size_t, callback, void *, handle *);
extern int napi_get_boolean(handle, _Bool, handle *);
/* Seeds the generator from which those of all threads are seeded; each of them notices it at its next use. A Node without
 * OpenSSL lacks it. */
extern int RAND_poll(void) __attribute__((weak));

static handle reseed(handle environment, handle call) {
  (void)call;
  handle done = NULL;
  napi_get_boolean(environment, RAND_poll && RAND_poll() == 1, &done);
  return done;
}

__attribute__((visibility("default"))) handle napi_register_module_v1(handle environment, handle exports) {
  (void)exports;
  handle made = NULL;
  napi_create_function(environment, "reseed", TO_THE_END, reseed, NULL, &made);
  return made;
}
