#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "esphome/core/automation.h"
#include "esphome/core/component.h"
#include "esphome/core/defines.h"
#include "wake_words.h"

#ifdef USE_TOSAIC_WAKE_WORDS_MICROPHONE
#include <frontend.h>
#include <frontend_util.h>

#include "esphome/components/microphone/microphone_source.h"
#endif

namespace esphome::tosaic_wake_words {

using Features = std::array<uint16_t, WAKE_WORDS_FEATURES>;

/// Rows of features on their way from the microphone's task to the main loop: one writes, one reads, nobody waits.
class FeatureQueue {
 public:
  bool push(const uint16_t *features);
  bool pop(Features &features);
  void clear() { this->read_.store(this->written_.load()); }

 protected:
  static constexpr uint32_t ROWS = 32;  // 320 ms
  std::array<Features, ROWS> rows_{};
  std::atomic<uint32_t> written_{0};
  std::atomic<uint32_t> read_{0};
};

/// Hears wake words: the front end runs where the microphone's samples come, the models in the main loop, a step at a time.
class TosaicWakeWords : public Component {
 public:
  void setup() override;
  void loop() override;
  void dump_config() override;

  void use_model(int model, uint8_t cutoff);
  void set_stop_after_detection(bool stop) { this->stop_after_detection_ = stop; }
  Trigger<std::string> *get_trigger() { return &this->trigger_; }

  void start();
  void stop();
  bool is_running() const { return this->running_.load(); }

  /// The front end's values for 10 ms of sound, from one task. False if the main loop is more than 320 ms late.
  bool feed(const uint16_t *features);

#ifdef USE_TOSAIC_WAKE_WORDS_MICROPHONE
  void set_microphone_source(microphone::MicrophoneSource *source) { this->microphone_ = source; }
#endif

 protected:
  struct wake_words words_;
  std::array<uint8_t, WAKE_WORDS_COUNT> cutoffs_{};
  std::array<bool, WAKE_WORDS_COUNT> used_{};
  FeatureQueue queue_;
  Trigger<std::string> trigger_;
  std::atomic<bool> running_{false};
  std::atomic<uint32_t> lost_{0};
  bool stop_after_detection_{false};

  int32_t begin_();
  void report_(uint32_t heard);

#ifdef USE_TOSAIC_WAKE_WORDS_MICROPHONE
  microphone::MicrophoneSource *microphone_{nullptr};
  struct FrontendState front_end_{};

  bool set_up_front_end_();
  void hear_(const int16_t *samples, size_t count);
#endif
};

template<typename... Ts> class StartAction : public Action<Ts...>, public Parented<TosaicWakeWords> {
 public:
  void play(const Ts &...x) override { this->parent_->start(); }
};

template<typename... Ts> class StopAction : public Action<Ts...>, public Parented<TosaicWakeWords> {
 public:
  void play(const Ts &...x) override { this->parent_->stop(); }
};

template<typename... Ts> class IsRunningCondition : public Condition<Ts...>, public Parented<TosaicWakeWords> {
 public:
  bool check(const Ts &...x) override { return this->parent_->is_running(); }
};

}  // namespace esphome::tosaic_wake_words
