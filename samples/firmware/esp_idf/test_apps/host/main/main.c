/* The test of the component: recorded features of spoken words go in; each model must give the bytes that Python got, step by
   step, and words must be heard, and blocked, in the rows in which ESPHome's rules do it on these bytes. With a C compiler
   alone, or as an ESP-IDF application. */
#include <stdio.h>

#include "recording.h" /* written with the models: the features, the bytes, the rows in which words are heard */
#include "wake_words.h"

static struct wake_words words;

/* 1 if what this row heard and blocked is not what the next event says. */
static int differs(int row, uint32_t heard, int *event) {
    uint32_t expected_heard = WAKE_WORDS_NONE, expected_blocked = WAKE_WORDS_NONE;
    if (*event < RECORDING_EVENTS && recording_events[*event].row == row) {
        expected_heard = recording_events[*event].heard;
        expected_blocked = recording_events[*event].blocked;
        ++*event;
    }
    return heard != expected_heard || words.blocked != expected_blocked;
}

static int failures(void) {
    int wrong = 0, step = 0, event = 0;
    if (wake_words_init(&words) != TOSAIC_OK) return 1;
    for (int row = 0; row < RECORDING_ROWS; ++row) {
        uint32_t heard;
        const int32_t error = wake_words_feed(&words, recording_features[row], &heard);
        if (error != TOSAIC_OK) {
            printf("row %d: error %d\n", row, (int)error);
            return 1;
        }
        wrong += differs(row, heard, &event);
        for (int model = 0; model < WAKE_WORDS_COUNT; ++model)
            if (heard >> model & 1u) printf("heard %s in row %d\n", wake_word_models[model].name, row);
        if (words.rows != 0) continue;
        for (int model = 0; model < WAKE_WORDS_COUNT; ++model)
            if (words.probabilities[model] != recording_bytes[step][model]) ++wrong;
        ++step;
    }
    wrong += RECORDING_EVENTS - event;
    printf("%d steps of %d models, %d differences from Python, %u bytes of memory\n", step, WAKE_WORDS_COUNT, wrong,
           (unsigned)sizeof words);
    return wrong;
}

#ifdef ESP_PLATFORM
void app_main(void) { failures(); }
#else
int main(void) { return failures() != 0; }
#endif
