"""An ESPHome component that hears wake words with models compiled to C source: its configuration, and the code for it.

`models.json` beside this file says which models the sources here hold, with the numbers of their detectors.
"""
from __future__ import annotations

import json
from pathlib import Path

import esphome.codegen as cg
import esphome.config_validation as cv
from esphome import automation
from esphome.components import esp32, microphone
from esphome.const import CONF_ID, CONF_MICROPHONE, CONF_MODEL
from esphome.core import CORE

CONF_CUTOFF = "probability_cutoff"
CONF_MODELS = "models"
CONF_ON_WAKE_WORD = "on_wake_word_detected"
CONF_STOP_AFTER_DETECTION = "stop_after_detection"
CONF_VAD = "vad"
MODELS = {model["name"]: model for model in json.loads((Path(__file__).parent / "models.json").read_text(encoding="utf-8"))}
WORDS = [name for name, model in MODELS.items() if not model["is_voice"]]
VOICES = [name for name, model in MODELS.items() if model["is_voice"]]
FRONT_END = {"name": "esphome/esp-micro-speech-features", "ref": "1.2.3"}

tosaic_wake_words_ns = cg.esphome_ns.namespace("tosaic_wake_words")
TosaicWakeWords = tosaic_wake_words_ns.class_("TosaicWakeWords", cg.Component)
StartAction = tosaic_wake_words_ns.class_("StartAction", automation.Action)
StopAction = tosaic_wake_words_ns.class_("StopAction", automation.Action)
IsRunningCondition = tosaic_wake_words_ns.class_("IsRunningCondition", automation.Condition)

MODEL_SCHEMA = cv.Schema({
    cv.Required(CONF_MODEL): cv.one_of(*WORDS, lower=True),
    cv.Optional(CONF_CUTOFF): cv.percentage,
})


def every_model_once(models):
    names = [model[CONF_MODEL] for model in models]
    if len(names) != len(set(names)):
        raise cv.Invalid("A model may be listed once")
    return models


def voice_model(value):
    """The model of voice activity that `vad:` names, or the first."""
    if not VOICES:
        raise cv.Invalid("These sources hold no model of voice activity: write them with a vad.json among the models")
    return cv.Schema({
        cv.Optional(CONF_MODEL, default=VOICES[0]): cv.one_of(*VOICES, lower=True),
        cv.Optional(CONF_CUTOFF): cv.percentage,
    })({} if value is None else value)


CONFIG_SCHEMA = cv.Schema({
    cv.GenerateID(): cv.declare_id(TosaicWakeWords),
    # Without a microphone the features of the sound come by `feed`, as in the test on the host.
    cv.Optional(CONF_MICROPHONE): cv.All(cv.only_on_esp32, microphone.microphone_source_schema()),
    cv.Optional(CONF_MODELS, default=WORDS): cv.All(
        cv.ensure_list(cv.maybe_simple_value(MODEL_SCHEMA, key=CONF_MODEL)), every_model_once),
    cv.Optional(CONF_VAD): voice_model,
    cv.Optional(CONF_STOP_AFTER_DETECTION, default=False): cv.boolean,
    cv.Optional(CONF_ON_WAKE_WORD): automation.validate_automation(single=True),
}).extend(cv.COMPONENT_SCHEMA)

FINAL_VALIDATE_SCHEMA = cv.Schema({
    cv.Optional(CONF_MICROPHONE): microphone.final_validate_microphone_source_schema("tosaic_wake_words", sample_rate=16000),
}, extra=cv.ALLOW_EXTRA)


def cutoff_byte(model: dict) -> int:
    """The cutoff in 255ths, as ESPHome rounds it."""
    return int(model.get(CONF_CUTOFF, MODELS[model[CONF_MODEL]]["cutoff"]) * 255)


async def to_code(config):
    var = cg.new_Pvariable(config[CONF_ID])
    await cg.register_component(var, config)
    voice = [config[CONF_VAD]] if CONF_VAD in config else []
    for model in [*config[CONF_MODELS], *voice]:
        cg.add(var.use_model(MODELS[model[CONF_MODEL]]["index"], cutoff_byte(model)))
    cg.add(var.set_stop_after_detection(config[CONF_STOP_AFTER_DETECTION]))
    if source := config.get(CONF_MICROPHONE):
        cg.add_define("USE_TOSAIC_WAKE_WORDS_MICROPHONE")
        cg.add(var.set_microphone_source(await microphone.microphone_source_to_code(source)))
        if CORE.is_esp32:
            esp32.add_idf_component(**FRONT_END)
    if actions := config.get(CONF_ON_WAKE_WORD):
        await automation.build_automation(var.get_trigger(), [(cg.std_string, "wake_word")], actions)


ACTION_SCHEMA = cv.Schema({cv.GenerateID(): cv.use_id(TosaicWakeWords)})


@automation.register_action("tosaic_wake_words.start", StartAction, ACTION_SCHEMA, synchronous=True)
@automation.register_action("tosaic_wake_words.stop", StopAction, ACTION_SCHEMA, synchronous=True)
@automation.register_condition("tosaic_wake_words.is_running", IsRunningCondition, ACTION_SCHEMA)
async def of_component(config, action_id, template_arg, args):
    var = cg.new_Pvariable(action_id, template_arg)
    await cg.register_parented(var, config[CONF_ID])
    return var
