#include "wake_words.h"

#ifdef ESP_PLATFORM
#include "sdkconfig.h"
#endif
#ifdef CONFIG_WAKE_WORDS_QUIET_STEPS
#define QUIET_STEPS CONFIG_WAKE_WORDS_QUIET_STEPS
#else
#define QUIET_STEPS 34 /* a second */
#endif

int8_t wake_words_quantize(uint16_t feature) {
    /* Above 1023 all is 127, so that the product stays within 32 bits. */
    const uint32_t limited = feature > 1023 ? 1023 : feature;
    const int32_t value = (int32_t)((limited * WAKE_WORDS_SCALE + (1u << (WAKE_WORDS_SCALE_BITS - 1))) >> WAKE_WORDS_SCALE_BITS);
    const int32_t shifted = value + WAKE_WORDS_ZERO_POINT;
    return (int8_t)(shifted > INT8_MAX ? INT8_MAX : shifted);
}

static void be_quiet(struct wake_word_detector *detector) {
    for (int i = 0; i < WAKE_WORDS_LONGEST_WINDOW; ++i) detector->recent[i] = 0;
    detector->sum = 0;
    detector->next = 0;
    detector->quiet = QUIET_STEPS;
}

/* Whether a word ends with this byte. */
static int detect(struct wake_word_detector *detector, uint8_t window, uint8_t probability) {
    detector->sum = (uint16_t)(detector->sum - detector->recent[detector->next] + probability);
    detector->recent[detector->next] = probability;
    detector->next = (uint8_t)((detector->next + 1) % window);
    if (detector->quiet > 0) {
        /* Only steps without the word count: it may be longer than the quiet. */
        if ((uint32_t)probability * window < detector->least_sum) --detector->quiet;
        return 0;
    }
    if (detector->sum < detector->least_sum) return 0;
    be_quiet(detector);
    return 1;
}

int32_t wake_words_enable(struct wake_words *words, int model, int enable) {
    words->enabled &= ~(1u << model);
    if (!enable) return TOSAIC_OK;
    be_quiet(&words->detectors[model]);
    words->probabilities[model] = 0;
    const int32_t error = wake_word_models[model].init(words);
    if (error == TOSAIC_OK) words->enabled |= 1u << model;
    return error;
}

int32_t wake_words_init(struct wake_words *words) {
    words->rows = 0;
    words->enabled = 0;
    for (int model = 0; model < WAKE_WORDS_COUNT; ++model) {
        words->detectors[model].least_sum = wake_word_models[model].least_sum;
        const int32_t error = wake_words_enable(words, model, 1);
        if (error != TOSAIC_OK) return error;
    }
    return TOSAIC_OK;
}

int32_t wake_words_feed(struct wake_words *words, const uint16_t features[WAKE_WORDS_FEATURES], uint32_t *heard) {
    *heard = WAKE_WORDS_NONE;
    for (int i = 0; i < WAKE_WORDS_FEATURES; ++i) words->input[words->rows][i] = wake_words_quantize(features[i]);
    if (++words->rows < WAKE_WORDS_ROWS) return TOSAIC_OK;
    words->rows = 0;
    for (int model = 0; model < WAKE_WORDS_COUNT; ++model) {
        if (!(words->enabled >> model & 1u)) continue;
        const int32_t error = wake_word_models[model].run(words, &words->probabilities[model]);
        if (error != TOSAIC_OK) return error;
        if (detect(&words->detectors[model], wake_word_models[model].window, words->probabilities[model]))
            *heard |= 1u << model;
    }
    return TOSAIC_OK;
}
