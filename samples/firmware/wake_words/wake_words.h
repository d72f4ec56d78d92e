/* Wake words: streaming models that share one memory, and a detector for each.

   Features come from TensorFlow's audio front end (windows of 30 ms every 10 ms, 40 channels). Three rows of them are a step: every
   model that is enabled runs once and gives a probability as a byte; a word is heard when the mean of its last bytes is above the
   model's cutoff. Then the detector is quiet until the word is over. Where a model of voice activity is enabled, words are heard
   while the mean of its last bytes is above its cutoff, too. Bytes and rules are those of ESPHome's micro_wake_word. No floating
   point, no heap, no other global memory: everything is in `struct wake_words`, which may lie in any memory. One structure is for
   one stream of sound. */
#ifndef WAKE_WORDS_H
#define WAKE_WORDS_H

#include <stdint.h>

#include "wake_word_models.h" /* written with the models: how many there are, their states, their workspace */

#ifdef __cplusplus
extern "C" {
#endif

#define WAKE_WORDS_NONE 0u

struct wake_word_detector {
    uint8_t recent[WAKE_WORDS_LONGEST_WINDOW]; /* the last bytes, as a ring */
    uint8_t last;                              /* where the newest one is */
    uint8_t fresh;                             /* 1 until the newest one was looked at */
    uint8_t quiet;                             /* rows that must pass before a word counts */
    uint8_t cutoff;                            /* in 255ths; the model's own after wake_words_init */
    uint16_t sum;                              /* of `recent` */
};

struct wake_words {
    struct wake_words_states states; /* what the models remember between steps */
    TOSAIC_ALIGNED(WAKE_WORDS_WORKSPACE_ALIGNMENT)
    union wake_words_workspace workspace; /* what a step works in; the models take turns */
    int8_t input[WAKE_WORDS_ROWS][WAKE_WORDS_FEATURES];
    struct wake_word_detector detectors[WAKE_WORDS_COUNT];
    uint8_t probabilities[WAKE_WORDS_COUNT]; /* of the last step, in 255ths */
    uint8_t rows;                            /* of `input` that have come */
    uint32_t enabled;                        /* bit i: model i runs */
    uint32_t blocked;                        /* bit i: word i would end in the last row, but no voice is heard */
};

/* One model: its name, its detector's numbers, and a call that runs it on `input`. */
struct wake_word_model {
    const char *name;
    uint8_t cutoff;   /* in 255ths, rounded down */
    uint8_t window;   /* bytes whose mean must be above it */
    uint8_t is_voice; /* 1: no word, but the voice without which no word is heard */
    int32_t (*init)(struct wake_words *words);
    int32_t (*run)(struct wake_words *words, uint8_t *probability);
};
extern const struct wake_word_model wake_word_models[WAKE_WORDS_COUNT];

/* Every model enabled, at the beginning of a stream. Returns TOSAIC_OK or an error of a model's header. */
int32_t wake_words_init(struct wake_words *words);

/* A model that is enabled begins anew; one that is not is not run. */
int32_t wake_words_enable(struct wake_words *words, int model, int enable);

/* 10 ms of sound: the front end's values. `heard` becomes the set of words that end here, bit i for model i.
   Returns TOSAIC_OK or an error of a model's header. */
int32_t wake_words_feed(struct wake_words *words, const uint16_t features[WAKE_WORDS_FEATURES], uint32_t *heard);

/* A feature as all models take it. */
int8_t wake_words_quantize(uint16_t feature);

#ifdef __cplusplus
}
#endif

#endif
