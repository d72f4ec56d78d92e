"""`tosaic show`: a stage as text, the state after a pass, or the result of compiling from the text of a stage."""
from __future__ import annotations

import argparse

from ...runtime.errors import Problem, printable_text
from ..models.entry import Entry
from .answer import YES, Answer
from .model_options import entry_of, model_of, options_with_target, take_pipe, text_of
from .progress import Progress


def show(options: argparse.Namespace) -> Answer:
    """Return one stage as text, or the state after a pass or after each pass, from a model or from the text of a stage."""
    from ...lowering import stage_text
    if options.start:
        options.stage = options.stage or options.model or "loops"
        text = resumed(options)
        return Answer(YES, text.rstrip("\n"), {"stage": options.stage, "text": text})
    if options.model in stage_text.STAGES and options.stage not in stage_text.STAGES:
        options.model, options.stage = options.stage, options.model
    if options.model is None:
        raise Problem("show needs a model", kind="argument", help="a file, or - for standard input; or --from FILE")
    take_pipe(options)
    stage = stage_text.known_stage(options.stage or "graph")
    with Progress("reading") as progress:
        if stage == "graph" and not (options.entry or options.after or options.print_after_all):
            text = model_of(options, progress).show(options.whole)
        else:
            text = shown_of(entry_of(options, progress), stage, options)
    return Answer(YES, text.rstrip("\n"), {"stage": stage, "text": text})


def shown_of(entry: Entry, stage: str, options: argparse.Namespace) -> str:
    """Return a stage of an entry, or its state after passes."""
    from ...lowering.options import CompileOptions
    from ...lowering.pipeline import start
    from ...lowering.stage_text import text_after, texts_after_all
    chosen = options_with_target(options) or CompileOptions()
    if not (options.after or options.print_after_all):
        return entry.lower(chosen).show(stage, options.whole)
    traced = entry.trace()
    state = start(traced.module, traced.name, chosen)
    if options.after:
        return printable_text(text_after(state, options.after, options.whole))
    return printable_text("\n".join(texts_after_all(state, options.whole)))


def resumed(options: argparse.Namespace) -> str:
    """Return a stage of a compilation that starts from the texts of stages."""
    from ...lowering import stage_text
    from ...lowering.options import CompileOptions
    stage = stage_text.known_stage(options.stage)
    texts = [(path, text_of(path)) for path in options.start]
    state = stage_text.resumed(texts, options_with_target(options) or CompileOptions())
    return printable_text(stage_text.text_of(state, stage, options.whole))
