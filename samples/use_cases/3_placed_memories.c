/* Use case 3: buffers in memories that the user places with section attributes. What does not fit the small fast ones goes to
   the next ones. The constants of itcm come as a macro; those of flash are assembled from classifier_flash.S.

       tosaic compile classifier.mlir --workspace-pools dtcm,sram --workspace-pool-dtcm "size=2K,access=c:rw" \
           --parameter-pools itcm,flash --parameter-pool-itcm "size=1000"
       cc -c classifier_flash.S -DTOSAIC_CLASSIFIER_FLASH_CONSTANT_POOL_SECTION=FLASH */
#include "console.h"
#include "tosaic_classifier.h"

#define PLACED(pool, section_name) \
    __attribute__((section(section_name), aligned(TOSAIC_CLASSIFIER_##pool##_POOL_ALIGNMENT)))

PLACED(DTCM_WORKSPACE, "DTCM") static unsigned char dtcm[TOSAIC_CLASSIFIER_DTCM_WORKSPACE_POOL_SIZE];
PLACED(SRAM_WORKSPACE, "SRAM") static unsigned char sram[TOSAIC_CLASSIFIER_SRAM_WORKSPACE_POOL_SIZE];
PLACED(ITCM_CONSTANT, "ITCM")
static const unsigned char itcm[TOSAIC_CLASSIFIER_ITCM_CONSTANT_POOL_SIZE] = {TOSAIC_CLASSIFIER_ITCM_CONSTANT_POOL_DATA};

static int8_t picture[TOSAIC_CLASSIFIER_INPUT_ARG0_SIZE], classes[TOSAIC_CLASSIFIER_OUTPUT_RESULT0_SIZE];

int main(void) {
    const struct tosaic_classifier_inputs inputs = {picture, sizeof picture};
    const struct tosaic_classifier_outputs outputs = {classes, sizeof classes};
    const struct tosaic_classifier_workspace_pools workspaces = {dtcm, sizeof dtcm, sram, sizeof sram};
    const struct tosaic_classifier_constant_pools constants = {
        itcm, sizeof itcm,
        tosaic_classifier_flash_constant_pool, sizeof tosaic_classifier_flash_constant_pool};

    if (tosaic_classifier_check_constants(&constants) != TOSAIC_OK) return 1;
    fill(picture, sizeof picture);
    if (tosaic_classifier_run(&inputs, &outputs, &workspaces, &constants) != TOSAIC_OK) return 2;
    print_numbers("classes", classes, sizeof classes);
    return 0;
}
