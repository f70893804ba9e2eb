/* What the files say. */

#ifndef SVC_FILES_H
#define SVC_FILES_H

#include <stdio.h>

/* The number of a file, or -1. */
int file_named(const char *name);
/* Whether it is the file by which the host sees that the server answers. */
int is_alive(int file);

/* Writes a file as the reader's container sees it, or the machine's own for a reader outside of containers. Returns 0 or
 * an errno. */
int write_file(int file, int reader, FILE *out);

/* Milliseconds until the load of the containers is to be measured again; -1: there is nothing to measure. */
int until_next_sample(void);
void take_samples(void);

#endif
