/* The test of the component: recorded features of spoken words go in, and each model must give the bytes that Python got, step by
   step, and hear its word once, where Python heard it. With a C compiler alone, or as an ESP-IDF application. */
#include <stdio.h>

#include "recording.h" /* written with the models: the features, the bytes, the steps in which words are heard */
#include "wake_words.h"

static struct wake_words words;

static int failures(void) {
    int wrong = 0, step = 0, times[WAKE_WORDS_COUNT] = {0};
    if (wake_words_init(&words) != TOSAIC_OK) return 1;
    for (int row = 0; row < RECORDING_ROWS; ++row) {
        uint32_t heard;
        const int32_t error = wake_words_feed(&words, recording_features[row], &heard);
        if (error != TOSAIC_OK) {
            printf("row %d: error %d\n", row, (int)error);
            return 1;
        }
        if (words.rows != 0) continue;
        for (int model = 0; model < WAKE_WORDS_COUNT; ++model) {
            if (words.probabilities[model] != recording_bytes[step][model]) ++wrong;
            if (!(heard >> model & 1u)) continue;
            printf("heard %s in step %d\n", wake_word_models[model].name, step);
            ++times[model];
            if (step != recording_heard[model]) ++wrong;
        }
        ++step;
    }
    for (int model = 0; model < WAKE_WORDS_COUNT; ++model)
        if (times[model] != 1) ++wrong;
    printf("%d steps of %d models, %d differences from Python, %u bytes of memory\n", step, WAKE_WORDS_COUNT, wrong,
           (unsigned)sizeof words);
    return wrong;
}

#ifdef ESP_PLATFORM
void app_main(void) { failures(); }
#else
int main(void) { return failures() != 0; }
#endif
