/* What a program needs on a Cortex-M without an operating system: the vector table, the start, the console of a debugger
   (semihosting), and the three functions of the C library that compilers call. The linker scripts beside it are for boards that
   QEMU emulates. */
#include <stddef.h>
#include <stdint.h>

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026, FAULT_EXIT = 99 };

#define COPROCESSORS (*(volatile uint32_t *)0xE000ED88u)

extern uint32_t board_stack_end[], board_bss[], board_bss_end[];
int main(void);
void board_reset(void);
void console_write(const char *text);
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);

static int32_t semihosting(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
}

void console_write(const char *text) { semihosting(SYS_WRITE0, text); }

static void leave(uint32_t code) {
    const uint32_t reason[2] = {APPLICATION_EXIT, code};
    semihosting(SYS_EXIT_EXTENDED, reason);
    for (;;) {
    }
}

void board_reset(void) {
#ifdef __ARM_FP
    COPROCESSORS |= 0xFu << 20; /* the floating-point unit is off at first */
    __asm__ volatile("dsb\n\tisb");
#endif
    for (uint32_t *p = board_bss; p < board_bss_end; ++p) *p = 0;
    leave((uint32_t)main());
}

static void fault(void) { leave(FAULT_EXIT); }

__attribute__((section(".vectors"), used)) static const struct {
    void *stack;
    void (*handlers[15])(void);
} vectors = {board_stack_end, {board_reset, fault, fault, fault, fault, fault}};

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
