/* Use case 1: nothing to know of memory. The object has its workspace and its constants inside.

       tosaic compile classifier.mlir --self-contained */
#include "console.h"
#include "tosaic_classifier.h"

static int8_t picture[TOSAIC_CLASSIFIER_INPUT_ARG0_SIZE], classes[TOSAIC_CLASSIFIER_OUTPUT_RESULT0_SIZE];

int main(void) {
    const struct tosaic_classifier_inputs inputs = {picture, sizeof picture};
    const struct tosaic_classifier_outputs outputs = {classes, sizeof classes};

    fill(picture, sizeof picture);
    if (tosaic_classifier_run(&inputs, &outputs) != TOSAIC_OK) return 1;
    print_numbers("classes", classes, sizeof classes);
    return 0;
}
