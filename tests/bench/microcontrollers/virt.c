/* What a program needs on QEMU's board `virt` of a processor (64-bit Arm, or RISC-V) without an operating system: the start, the
   console by semihosting, and the end. */
#include <stddef.h>
#include <stdint.h>

enum { WRITE_TEXT = 0x04, EXIT = sizeof(long) == 8 ? 0x18 : 0x20, EXIT_OF_APPLICATION = 0x20026 };

int main(void);
void console_write(const char *text);
void start_in_c(void);

#if defined(__aarch64__)
__asm__(".section .text.start\n.globl _start\n_start:\n adrp x0, stack_end\n add x0, x0, :lo12:stack_end\n mov sp, x0\n"
        " mov x0, #0x330000\n msr cpacr_el1, x0\n isb\n bl start_in_c\n.text\n"); /* floats and vectors on */

static void semihosting(long operation, const void *block) {
    register long x0 __asm__("x0") = operation;
    register const void *x1 __asm__("x1") = block;
    __asm__ volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
}
#else
__asm__(".section .text.start\n.globl _start\n_start:\n .option push\n .option norelax\n la gp, __global_pointer$\n"
        " .option pop\n la sp, stack_end\n li t0, 0x2200\n csrs mstatus, t0\n call start_in_c\n.text\n");

static void semihosting(long operation, const void *block) {
    register long a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = block;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\n slli zero, zero, 0x1f\n ebreak\n srai zero, zero, 7\n.option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
}
#endif

void console_write(const char *text) { semihosting(WRITE_TEXT, text); }

void start_in_c(void) {
    for (;;) {
        const unsigned long block[2] = {EXIT_OF_APPLICATION, (unsigned long)main()};
        semihosting(EXIT, block);
    }
}
