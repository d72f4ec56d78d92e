/* What a program needs on a Xtensa LX106 without an operating system: the start, the console of the simulator (simcalls), the three
   functions of the C library that compilers call, and the arithmetic that this gcc expects in the chip's ROM. For QEMU's machine
   sim. */
#include <stddef.h>
#include <stdint.h>

enum { SYS_EXIT = 1, SYS_WRITE = 4, STDOUT = 1 };

extern uint32_t board_bss[], board_bss_end[];
int main(void);
void board_start(void);
void console_write(const char *text);
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
uint64_t __umulsidi3(uint32_t x, uint32_t y);
uint64_t __muldi3(uint64_t x, uint64_t y);
uint32_t __udivsi3(uint32_t x, uint32_t y);
uint32_t __umodsi3(uint32_t x, uint32_t y);
int32_t __divsi3(int32_t x, int32_t y);

__asm__(".section .reset, \"ax\"\n"
        "board_reset:\n"
        "    j 1f\n"
        "    .align 4\n"
        "stack_end: .word board_stack_end\n"
        "start: .word board_start\n"
        "    .align 4\n"
        "1:  l32r a1, stack_end\n"
        "    l32r a0, start\n"
        "    callx0 a0\n"
        "    .global board_reset\n"
        "    .text\n");

static int32_t simcall(int32_t operation, int32_t first, const void *second, size_t third) {
    register int32_t a2 __asm__("a2") = operation;
    register int32_t a3 __asm__("a3") = first;
    register const void *a4 __asm__("a4") = second;
    register size_t a5 __asm__("a5") = third;
    __asm__ volatile("simcall" : "+r"(a2), "+r"(a3) : "r"(a4), "r"(a5) : "memory");
    return a2;
}

void console_write(const char *text) {
    size_t size = 0;
    while (text[size]) ++size;
    while (size) {
        const int32_t written = simcall(SYS_WRITE, STDOUT, text, size);
        if (written <= 0) return;
        text += written;
        size -= (size_t)written;
    }
}

void board_start(void) {
    for (uint32_t *p = board_bss; p < board_bss_end; ++p) *p = 0;
    simcall(SYS_EXIT, main(), NULL, 0);
    for (;;) {
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *t = to;
    const unsigned char *f = from;
    while (size--) *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t <= f) return memcpy(to, from, size);
    while (size--) t[size] = f[size];
    return to;
}

void *memset(void *to, int value, size_t size) {
    unsigned char *t = to;
    while (size--) *t++ = (unsigned char)value;
    return to;
}

union words {
    uint64_t whole;
    struct {
        uint32_t low, high;
    } half;
};

uint64_t __umulsidi3(uint32_t x, uint32_t y) {
    const uint32_t low = (x & 0xffffu) * (y & 0xffffu), one = (x >> 16) * (y & 0xffffu);
    const uint32_t other = (x & 0xffffu) * (y >> 16) + (one & 0xffffu) + (low >> 16);
    union words product;
    product.half.low = other << 16 | (low & 0xffffu);
    product.half.high = (x >> 16) * (y >> 16) + (one >> 16) + (other >> 16);
    return product.whole;
}

uint64_t __muldi3(uint64_t x, uint64_t y) {
    union words a, b, product;
    a.whole = x;
    b.whole = y;
    product.whole = __umulsidi3(a.half.low, b.half.low);
    product.half.high += a.half.low * b.half.high + a.half.high * b.half.low;
    return product.whole;
}

static uint32_t divide(uint32_t x, uint32_t y, uint32_t *rest) {
    uint32_t quotient = 0, left = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const uint32_t is_over = left >> 31;
        left = left << 1 | (x >> bit & 1u);
        if (is_over || left >= y) {
            left -= y;
            quotient |= (uint32_t)1 << bit;
        }
    }
    *rest = left;
    return quotient;
}

uint32_t __udivsi3(uint32_t x, uint32_t y) {
    uint32_t rest;
    return divide(x, y, &rest);
}

uint32_t __umodsi3(uint32_t x, uint32_t y) {
    uint32_t rest;
    divide(x, y, &rest);
    return rest;
}

int32_t __divsi3(int32_t x, int32_t y) {
    const uint32_t size = __udivsi3(x < 0 ? 0u - (uint32_t)x : (uint32_t)x, y < 0 ? 0u - (uint32_t)y : (uint32_t)y);
    return (int32_t)((x < 0) == (y < 0) ? size : 0u - size);
}
