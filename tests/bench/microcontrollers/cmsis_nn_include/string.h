/* What CMSIS-NN's sources ask a C library for, where there is none; counting.c has the functions. */
#ifndef STRING_H
#define STRING_H

#include <stddef.h>

void *memcpy(void *__restrict to, const void *__restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);

#endif
