/* Two instances of a stateful LSTM, compiled by tosaic with --state caller: one object, a state for each. */
#include <stdio.h>

#include "tosaic_lstm.h"

static TOSAIC_ALIGNED(TOSAIC_LSTM_WORKSPACE_ALIGNMENT) unsigned char workspace[TOSAIC_LSTM_WORKSPACE_SIZE];

int main(void) {
    static struct tosaic_lstm_state left, right; /* zeros, or any memory and then tosaic_lstm_init */
    float x[6], y[8];
    const struct tosaic_lstm_inputs inputs = {x, sizeof x};
    const struct tosaic_lstm_outputs outputs = {y, sizeof y};
    const struct tosaic_lstm_workspace_pools pools = {workspace, sizeof workspace};
    for (int step = 0; step < 3; ++step) {
        for (int i = 0; i < 6; ++i) x[i] = 0.25f * (float)(step + 1);
        int error = tosaic_lstm_run(&left, &inputs, &outputs, &pools);
        if (step > 0 && error == TOSAIC_OK) error = tosaic_lstm_run(&right, &inputs, &outputs, &pools);
        if (error != TOSAIC_OK) return error;
    }
    for (int i = 0; i < 8; ++i) printf("%.6f%c", (double)y[i], i < 7 ? ' ' : '\n');
    return 0;
}
