"""The four networks of MLPerf Tiny on emulated microcontrollers: memory, flash, stack and instructions of a call, beside TFLite
Micro's arena and CMSIS-NN's kernels."""
