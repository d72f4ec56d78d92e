/* The console of a program with an operating system. */
#include <stdio.h>

#include "console.h"

void console_write(const char *text) { fputs(text, stdout); }
