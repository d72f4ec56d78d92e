/* Use case 4: inputs and outputs lie in the workspace, and a run uses their bytes again when it does not need them any more.

       tosaic compile classifier.mlir --workspace-pools sram --workspace-io */
#include "console.h"
#include "tosaic_classifier.h"

static TOSAIC_ALIGNED(TOSAIC_CLASSIFIER_SRAM_WORKSPACE_POOL_ALIGNMENT)
unsigned char sram[TOSAIC_CLASSIFIER_SRAM_WORKSPACE_POOL_SIZE];

int main(void) {
    const struct tosaic_classifier_workspace_pools pools = {sram, sizeof sram};
    const struct tosaic_classifier_inputs inputs = tosaic_classifier_map_inputs(&pools);
    const struct tosaic_classifier_outputs outputs = tosaic_classifier_map_outputs(&pools);

    fill(inputs.arg0, inputs.arg0_size);
    if (tosaic_classifier_run(&pools) != TOSAIC_OK) return 1;
    print_numbers("classes", outputs.result0, outputs.result0_size);
    return 0;
}
