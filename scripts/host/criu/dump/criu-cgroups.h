/* The system calls for file systems of cgroups that criu-preload.c answers. */
#pragma once

/* Answers a call that makes such a file system once more: returns 1 and sets `*result` and errno. 0: another call. */
int keep_cgroups(long number, const long arguments[6], long *result, long (*real)(long, ...));
