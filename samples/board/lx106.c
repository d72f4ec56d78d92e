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
float __addsf3(float x, float y);
float __subsf3(float x, float y);
float __mulsf3(float x, float y);
float __floatsisf(int32_t x);

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

/* Floats: a sign, and mantissa * 2^exponent. */
struct parts {
    uint32_t sign, mantissa;
    int32_t exponent;
};

enum { ENDLESS = 255 - 150 };

static float float_of(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } both;
    both.bits = bits;
    return both.value;
}

static struct parts parts_of(float x) {
    union {
        float value;
        uint32_t bits;
    } both;
    struct parts found;
    both.value = x;
    found.sign = both.bits & 0x80000000u;
    found.mantissa = both.bits & 0x7fffffu;
    found.exponent = (int32_t)(both.bits >> 23 & 255u) - 150;
    if (found.exponent == -150) found.exponent = -149;
    else found.mantissa |= 0x800000u;
    return found;
}

static int is_nan(struct parts x) { return x.exponent == ENDLESS && x.mantissa != 0x800000u; }

static float rounded(uint32_t sign, uint64_t mantissa, int32_t exponent) {
    uint32_t whole, rest, half;
    int32_t biased, dropped = 8;
    if (mantissa == 0) return float_of(sign);
    for (; mantissa >> 32 != 0; ++exponent) mantissa = mantissa >> 1 | (mantissa & 1u);
    for (whole = (uint32_t)mantissa; whole >> 31 == 0; --exponent) whole <<= 1;
    biased = exponent + 31 + 127;
    if (biased >= 255) return float_of(sign | 0x7f800000u);
    if (biased < 1) {
        dropped += 1 - biased;
        biased = 1;
        if (dropped > 31) return float_of(sign | (dropped == 32 && whole > 0x80000000u)); /* half the smallest is 0 */
    }
    rest = whole & (((uint32_t)1 << dropped) - 1);
    half = (uint32_t)1 << (dropped - 1);
    whole >>= dropped;
    if (rest > half || (rest == half && (whole & 1u) != 0)) ++whole;
    return float_of(sign | (((uint32_t)(biased - 1) << 23) + whole));
}

float __mulsf3(float x, float y) {
    const struct parts a = parts_of(x), b = parts_of(y);
    const uint32_t sign = a.sign ^ b.sign;
    if (is_nan(a) || is_nan(b)) return float_of(0x7fc00000u);
    if (a.exponent == ENDLESS || b.exponent == ENDLESS)
        return float_of(a.mantissa == 0 || b.mantissa == 0 ? 0x7fc00000u : sign | 0x7f800000u);
    return rounded(sign, __umulsidi3(a.mantissa, b.mantissa), a.exponent + b.exponent);
}

float __addsf3(float x, float y) {
    struct parts a = parts_of(x), b = parts_of(y);
    uint64_t large, small, rest;
    int32_t apart;
    if (is_nan(a) || is_nan(b)) return float_of(0x7fc00000u);
    if (a.exponent == ENDLESS || b.exponent == ENDLESS) {
        if (a.exponent == b.exponent && a.sign != b.sign) return float_of(0x7fc00000u);
        return float_of((a.exponent == ENDLESS ? a.sign : b.sign) | 0x7f800000u);
    }
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.mantissa < b.mantissa)) {
        const struct parts other = a;
        a = b;
        b = other;
    }
    apart = a.exponent - b.exponent > 40 ? 40 : a.exponent - b.exponent;
    large = (uint64_t)a.mantissa << 38;
    small = (uint64_t)b.mantissa << 38;
    rest = small & (((uint64_t)1 << apart) - 1);
    small = small >> apart | (rest != 0);
    if (a.sign == b.sign) return rounded(a.sign, large + small, a.exponent - 38);
    return rounded(large == small ? 0 : a.sign, large - small, a.exponent - 38);
}

float __subsf3(float x, float y) {
    const struct parts b = parts_of(y);
    union {
        float value;
        uint32_t bits;
    } other;
    other.value = y;
    other.bits ^= 0x80000000u;
    return is_nan(b) ? float_of(0x7fc00000u) : __addsf3(x, other.value);
}

float __floatsisf(int32_t x) {
    return rounded(x < 0 ? 0x80000000u : 0, x < 0 ? 0u - (uint32_t)x : (uint32_t)x, 0);
}
