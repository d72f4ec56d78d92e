/* What the use cases share: a made-up picture, and numbers on a console. host.c or a board says what the console is. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stddef.h>
#include <stdint.h>

void console_write(const char *text);

static inline void fill(int8_t *picture, size_t count) {
    for (size_t i = 0; i < count; ++i) picture[i] = (int8_t)((int)(i * 37 + 11) % 251 - 125);
}

static inline void print_numbers(const char *name, const int8_t *values, size_t count) {
    console_write(name);
    console_write(":");
    for (size_t i = 0; i < count; ++i) {
        char text[6] = " ", *p = text + 1;
        int value = values[i];
        if (value < 0) *p++ = '-', value = -value;
        if (value >= 100) *p++ = (char)('0' + value / 100);
        if (value >= 10) *p++ = (char)('0' + value / 10 % 10);
        *p++ = (char)('0' + value % 10);
        *p = 0;
        console_write(text);
    }
    console_write("\n");
}

#endif
