#include "counting.h"

#include "console.h"

static void print_ticks(uint64_t ticks);

int32_t counting_result;

#if defined(__arm__)
#define TIMER_CONTROL (*(volatile uint32_t *)0xE000E010u)
#define TIMER_RELOAD (*(volatile uint32_t *)0xE000E014u)
#define TIMER_NOW (*(volatile uint32_t *)0xE000E018u)
#define VECTOR_TABLE (*(volatile uint32_t *)0xE000ED08u)

enum { EXCEPTIONS = 16, TIMER_EXCEPTION = 15, RUN_WITH_INTERRUPT = 7 };
#define TIMER_PERIOD 0x1000000u

static volatile uint32_t periods;
static __attribute__((aligned(128))) uint32_t vectors[EXCEPTIONS];

static void period_ends(void) { ++periods; }

void counting_start(void) {
    const uint32_t *old = (const uint32_t *)(uintptr_t)VECTOR_TABLE;
    if (old != vectors) {
        for (int i = 0; i < EXCEPTIONS; ++i) vectors[i] = old[i];
        vectors[TIMER_EXCEPTION] = (uint32_t)(uintptr_t)period_ends;
        VECTOR_TABLE = (uint32_t)(uintptr_t)vectors;
    }
    TIMER_RELOAD = TIMER_PERIOD - 1;
    periods = 0;
    TIMER_NOW = 0; /* any value: it begins at the reload value */
    TIMER_CONTROL = RUN_WITH_INTERRUPT;
}

void counting_end(void) {
    uint32_t before, now;
    do before = periods, now = TIMER_NOW; while (before != periods);
    TIMER_CONTROL = 0;
    print_ticks((uint64_t)before * TIMER_PERIOD + (TIMER_PERIOD - 1 - now));
}
#else
static uint64_t start;

static uint64_t now(void) {
    unsigned long value; /* of 32 bits on a processor of so many: a program is shorter */
#if defined(__aarch64__)
    __asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(value) : : "memory");
#else
    __asm__ volatile("csrr %0, minstret" : "=r"(value) : : "memory");
#endif
    return value;
}

void counting_start(void) { start = now(); }

void counting_end(void) { print_ticks(now() - start); }
#endif

static void print_ticks(uint64_t ticks) {
    char text[24] = {0};
    int at = 22;
    text[at] = '\n';
    do text[--at] = (char)('0' + ticks % 10); while (ticks /= 10);
    console_write("ticks ");
    console_write(text + at);
}

void print_bytes(const void *data, size_t size) {
    const unsigned char *p = data;
    char text[65];
    while (size) {
        size_t n = 0;
        for (; n < 64 && size; --size, ++p) {
            text[n++] = "0123456789abcdef"[*p / 16];
            text[n++] = "0123456789abcdef"[*p % 16];
        }
        text[n] = 0;
        console_write(text);
    }
    console_write("\n");
}

/* What the linker takes for memcpy and memset (--wrap): by words, as a microcontroller's C library has them; the board's own are
   by bytes. Each of these processors loads words from any address. */
void *__wrap_memcpy(void *restrict to, const void *restrict from, size_t size);
void *__wrap_memset(void *to, int value, size_t size);

struct word { uint32_t value; } __attribute__((packed, may_alias));

void *__wrap_memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *t = to;
    const unsigned char *f = from;
    for (; size >= 16; size -= 16, t += 16, f += 16)
        for (int i = 0; i < 4; ++i) ((struct word *)t)[i] = ((const struct word *)f)[i];
    for (; size >= 4; size -= 4, t += 4, f += 4) *(struct word *)t = *(const struct word *)f;
    for (; size; --size) *t++ = *f++;
    return to;
}

void *__wrap_memset(void *to, int value, size_t size) {
    unsigned char *t = to;
    const uint32_t word = (unsigned char)value * 0x01010101u;
    for (; size >= 4; size -= 4, t += 4) ((struct word *)t)->value = word;
    for (; size; --size) *t++ = (unsigned char)value;
    return to;
}
