#include "wake_words.h"

#ifdef ESP_PLATFORM
#include "sdkconfig.h"
#endif
#ifdef CONFIG_WAKE_WORDS_QUIET_ROWS
#define QUIET_ROWS CONFIG_WAKE_WORDS_QUIET_ROWS
#else
#define QUIET_ROWS 100 /* a second */
#endif

int8_t wake_words_quantize(uint16_t feature) {
    /* The front end's 0 to 666 become -128 to 127, rounded to the nearest. */
    const uint32_t value = (256u * feature + 333u) / 666u;
    return (int8_t)((int32_t)(value > 255u ? 255u : value) - 128);
}

static void be_quiet(struct wake_word_detector *detector) {
    for (int i = 0; i < WAKE_WORDS_LONGEST_WINDOW; ++i) detector->recent[i] = 0;
    detector->sum = 0;
    detector->last = 0;
    detector->fresh = 0;
    detector->quiet = QUIET_ROWS;
}

static int is_enabled(const struct wake_words *words, int model) { return (int)(words->enabled >> model & 1u); }

static void take(struct wake_word_detector *detector, uint8_t window, uint8_t probability) {
    detector->last = (uint8_t)((detector->last + 1) % window);
    detector->sum = (uint16_t)(detector->sum - detector->recent[detector->last] + probability);
    detector->recent[detector->last] = probability;
    detector->fresh = 1;
}

static int is_above(const struct wake_words *words, int model) {
    const struct wake_word_detector *detector = &words->detectors[model];
    return detector->sum > (uint32_t)detector->cutoff * wake_word_models[model].window;
}

static int is_voice(const struct wake_words *words) {
    for (int model = 0; model < WAKE_WORDS_COUNT; ++model)
        if (wake_word_models[model].is_voice && is_enabled(words, model) && !is_above(words, model)) return 0;
    return 1;
}

/* True if the quiet is over, and the bytes of a step that was not looked at yet are above the cutoff. */
static int ends(struct wake_words *words, int model) {
    struct wake_word_detector *detector = &words->detectors[model];
    /* Only rows without the word count: it may be longer than the quiet. */
    if (detector->quiet > 0 && detector->recent[detector->last] < detector->cutoff) --detector->quiet;
    if (detector->quiet > 0 || !detector->fresh) return 0;
    detector->fresh = 0;
    return is_above(words, model);
}

/* The set of words that end in this row; without a voice they are blocked, and may be heard in the next step. */
static uint32_t detect(struct wake_words *words) {
    const int voice = is_voice(words);
    uint32_t heard = WAKE_WORDS_NONE;
    words->blocked = WAKE_WORDS_NONE;
    for (int model = 0; model < WAKE_WORDS_COUNT; ++model) {
        if (wake_word_models[model].is_voice || !is_enabled(words, model) || !ends(words, model)) continue;
        if (!voice) {
            words->blocked |= 1u << model;
            continue;
        }
        heard |= 1u << model;
        be_quiet(&words->detectors[model]);
    }
    return heard;
}

static int32_t run_models(struct wake_words *words) {
    for (int model = 0; model < WAKE_WORDS_COUNT; ++model) {
        if (!is_enabled(words, model)) continue;
        const int32_t error = wake_word_models[model].run(words, &words->probabilities[model]);
        if (error != TOSAIC_OK) return error;
        take(&words->detectors[model], wake_word_models[model].window, words->probabilities[model]);
    }
    return TOSAIC_OK;
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
    words->blocked = WAKE_WORDS_NONE;
    for (int model = 0; model < WAKE_WORDS_COUNT; ++model) {
        words->detectors[model].cutoff = wake_word_models[model].cutoff;
        const int32_t error = wake_words_enable(words, model, 1);
        if (error != TOSAIC_OK) return error;
    }
    return TOSAIC_OK;
}

int32_t wake_words_feed(struct wake_words *words, const uint16_t features[WAKE_WORDS_FEATURES], uint32_t *heard) {
    *heard = WAKE_WORDS_NONE;
    for (int i = 0; i < WAKE_WORDS_FEATURES; ++i) words->input[words->rows][i] = wake_words_quantize(features[i]);
    if (++words->rows == WAKE_WORDS_ROWS) {
        words->rows = 0;
        const int32_t error = run_models(words);
        if (error != TOSAIC_OK) return error;
    }
    *heard = detect(words);
    return TOSAIC_OK;
}
