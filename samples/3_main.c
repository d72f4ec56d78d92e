/* Three steps of a stateful LSTM, compiled by tosaic. All memory is this program's own. */
#include <stdio.h>

#include "tosaic_lstm.h"

static TOSAIC_ALIGNED(TOSAIC_LSTM_WORKSPACE_ALIGNMENT) unsigned char workspace[TOSAIC_LSTM_WORKSPACE_SIZE];

int main(void) {
    float x[6], y[8];
    const struct tosaic_lstm_inputs inputs = {x, sizeof x};
    const struct tosaic_lstm_outputs outputs = {y, sizeof y};
    const struct tosaic_lstm_workspace_pools pools = {workspace, sizeof workspace};
    tosaic_lstm_reset();
    for (int step = 0; step < 3; ++step) {
        for (int i = 0; i < 6; ++i) x[i] = 0.25f * (float)(step + 1);
        int error = tosaic_lstm_run(&inputs, &outputs, &pools);
        if (error != TOSAIC_OK) return error;
    }
    for (int i = 0; i < 8; ++i) printf("%.6f%c", (double)y[i], i < 7 ? ' ' : '\n');
    return 0;
}
