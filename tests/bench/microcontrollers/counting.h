/* Counts instructions of calls on a board that QEMU emulates with `-icount shift=6`: there each instruction takes 64 ns of the
   board's time, so that its timer counts them, whatever else the machine does that runs QEMU; RISC-V counts instructions itself.
   boards.py makes instructions of the ticks. */
#ifndef COUNTING_H
#define COUNTING_H

#include <stddef.h>
#include <stdint.h>

extern int32_t counting_result;

void counting_start(void);

/* Prints the ticks since the start. */
void counting_end(void);

/* Prints bytes in hexadecimal, on a line. */
void print_bytes(const void *data, size_t size);

/* The value of a call, whose instructions are counted. */
#define COUNTED(call) (counting_start(), counting_result = (int32_t)(call), counting_end(), counting_result)

#endif
