/* Use case 2: two models work in the same memory, which is as large as the one that needs more of it.

       tosaic compile classifier.mlir --workspace-pools sram
       tosaic compile detector.mlir --workspace-pools sram */
#include "console.h"
#include "tosaic_classifier.h"
#include "tosaic_detector.h"

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SIZE LARGER(TOSAIC_CLASSIFIER_SRAM_WORKSPACE_POOL_SIZE, TOSAIC_DETECTOR_SRAM_WORKSPACE_POOL_SIZE)
#define ALIGNMENT LARGER(TOSAIC_CLASSIFIER_SRAM_WORKSPACE_POOL_ALIGNMENT, TOSAIC_DETECTOR_SRAM_WORKSPACE_POOL_ALIGNMENT)

static TOSAIC_ALIGNED(ALIGNMENT) unsigned char sram[SIZE];

static int8_t picture[TOSAIC_CLASSIFIER_INPUT_ARG0_SIZE], classes[TOSAIC_CLASSIFIER_OUTPUT_RESULT0_SIZE];
static int8_t strip[TOSAIC_DETECTOR_INPUT_ARG0_SIZE];
static int8_t means[TOSAIC_DETECTOR_OUTPUT_RESULT0_SIZE], peaks[TOSAIC_DETECTOR_OUTPUT_RESULT1_SIZE];

static int classify(void) {
    const struct tosaic_classifier_inputs inputs = {picture, sizeof picture};
    const struct tosaic_classifier_outputs outputs = {classes, sizeof classes};
    const struct tosaic_classifier_workspace_pools pools = {sram, sizeof sram};
    return tosaic_classifier_run(&inputs, &outputs, &pools);
}

static int detect(void) {
    const struct tosaic_detector_inputs inputs = {strip, sizeof strip};
    const struct tosaic_detector_outputs outputs = {means, sizeof means, peaks, sizeof peaks};
    const struct tosaic_detector_workspace_pools pools = {sram, sizeof sram};
    return tosaic_detector_run(&inputs, &outputs, &pools);
}

int main(void) {
    fill(picture, sizeof picture);
    fill(strip, sizeof strip);
    for (int turn = 0; turn < 2; ++turn)
        if (classify() != TOSAIC_OK || detect() != TOSAIC_OK) return 1;
    print_numbers("classes", classes, sizeof classes);
    print_numbers("means", means, sizeof means);
    print_numbers("peaks", peaks, sizeof peaks);
    return 0;
}
