#include "tosaic_wake_words.h"

#include <algorithm>
#include <cinttypes>

#include "esphome/core/log.h"

namespace esphome::tosaic_wake_words {

static const char *const TAG = "tosaic_wake_words";

bool FeatureQueue::push(const uint16_t *features) {
  const uint32_t written = this->written_.load(std::memory_order_relaxed);
  if (written - this->read_.load(std::memory_order_acquire) == ROWS)
    return false;
  std::copy_n(features, WAKE_WORDS_FEATURES, this->rows_[written % ROWS].begin());
  this->written_.store(written + 1, std::memory_order_release);
  return true;
}

bool FeatureQueue::pop(Features &features) {
  const uint32_t read = this->read_.load(std::memory_order_relaxed);
  if (read == this->written_.load(std::memory_order_acquire))
    return false;
  features = this->rows_[read % ROWS];
  this->read_.store(read + 1, std::memory_order_release);
  return true;
}

void TosaicWakeWords::use_model(int model, uint8_t cutoff) {
  this->cutoffs_[model] = cutoff;
  this->used_[model] = true;
}

int32_t TosaicWakeWords::begin_() {
  const int32_t error = wake_words_init(&this->words_);
  for (int model = 0; error == TOSAIC_OK && model < WAKE_WORDS_COUNT; model++) {
    this->words_.detectors[model].cutoff = this->cutoffs_[model];
    if (!this->used_[model])
      wake_words_enable(&this->words_, model, 0);
  }
  return error;
}

void TosaicWakeWords::setup() {
#ifdef USE_TOSAIC_WAKE_WORDS_MICROPHONE
  if (!this->set_up_front_end_()) {
    ESP_LOGE(TAG, "No memory for the audio front end");
    this->mark_failed();
    return;
  }
  this->microphone_->add_data_callback([this](const std::vector<uint8_t> &data) {
    if (this->is_running())
      this->hear_(reinterpret_cast<const int16_t *>(data.data()), data.size() / sizeof(int16_t));
  });
#endif
  this->start();
}

void TosaicWakeWords::dump_config() {
  ESP_LOGCONFIG(TAG, "Wake words: %u bytes of memory", (unsigned) sizeof(this->words_));
  for (int model = 0; model < WAKE_WORDS_COUNT; model++) {
    if (this->used_[model]) {
      ESP_LOGCONFIG(TAG, "  %s: mean of %u above %u of 255", wake_word_models[model].name,
                    (unsigned) wake_word_models[model].window, (unsigned) this->cutoffs_[model]);
    }
  }
}

void TosaicWakeWords::start() {
  if (this->is_failed() || this->is_running())
    return;
  this->queue_.clear();
  if (const int32_t error = this->begin_(); error != TOSAIC_OK) {
    ESP_LOGE(TAG, "Models do not start: error %" PRId32, error);
    this->mark_failed();
    return;
  }
  this->running_.store(true);
#ifdef USE_TOSAIC_WAKE_WORDS_MICROPHONE
  this->microphone_->start();
#endif
}

void TosaicWakeWords::stop() {
  if (!this->is_running())
    return;
  this->running_.store(false);
#ifdef USE_TOSAIC_WAKE_WORDS_MICROPHONE
  this->microphone_->stop();
#endif
}

bool TosaicWakeWords::feed(const uint16_t *features) {
  const bool fits = this->queue_.push(features);
  if (!fits)
    this->lost_.fetch_add(1);
  return fits;
}

void TosaicWakeWords::loop() {
  if (const uint32_t lost = this->lost_.exchange(0)) {
    ESP_LOGW(TAG, "The main loop is late: %" PRIu32 " ms of sound lost", 10 * lost);
  }
  Features features;
  // One step at most, so that the loop of other components is not kept waiting for several.
  for (int row = 0; row < WAKE_WORDS_ROWS && this->is_running() && this->queue_.pop(features); row++) {
    uint32_t heard;
    if (const int32_t error = wake_words_feed(&this->words_, features.data(), &heard); error != TOSAIC_OK) {
      ESP_LOGE(TAG, "A step failed: error %" PRId32, error);
      this->stop();
      this->mark_failed();
      return;
    }
    this->report_(heard);
  }
}

void TosaicWakeWords::report_(uint32_t heard) {
  for (int model = 0; model < WAKE_WORDS_COUNT; model++) {
    if (this->words_.blocked >> model & 1)
      ESP_LOGD(TAG, "The model hears %s, but there is no voice", wake_word_models[model].name);
  }
  for (int model = 0; model < WAKE_WORDS_COUNT; model++) {
    if ((heard >> model & 1) == 0)
      continue;
    ESP_LOGD(TAG, "Heard %s", wake_word_models[model].name);
    if (this->stop_after_detection_)
      this->stop();
    this->trigger_.trigger(wake_word_models[model].name);
  }
}

#ifdef USE_TOSAIC_WAKE_WORDS_MICROPHONE

/// What the models were trained with.
bool TosaicWakeWords::set_up_front_end_() {
  struct FrontendConfig config;
  FrontendFillConfigWithDefaults(&config);
  config.window.size_ms = 30;
  config.window.step_size_ms = 10;
  config.filterbank.num_channels = WAKE_WORDS_FEATURES;
  config.filterbank.lower_band_limit = 125.0f;
  config.filterbank.upper_band_limit = 7500.0f;
  config.noise_reduction.smoothing_bits = 10;
  config.noise_reduction.even_smoothing = 0.025f;
  config.noise_reduction.odd_smoothing = 0.06f;
  config.noise_reduction.min_signal_remaining = 0.05f;
  config.pcan_gain_control.enable_pcan = 1;
  config.pcan_gain_control.strength = 0.95f;
  config.pcan_gain_control.offset = 80.0f;
  config.pcan_gain_control.gain_bits = 21;
  config.log_scale.enable_log = 1;
  config.log_scale.scale_shift = 6;
  return FrontendPopulateState(&config, &this->front_end_, 16000) != 0;
}

void TosaicWakeWords::hear_(const int16_t *samples, size_t count) {
  while (count > 0) {
    size_t used = 0;
    const struct FrontendOutput output = FrontendProcessSamples(&this->front_end_, samples, count, &used);
    samples += used;
    count -= used;
    if (output.size == WAKE_WORDS_FEATURES)
      this->feed(output.values);
  }
}

#endif

}  // namespace esphome::tosaic_wake_words
