"""Machines: what one is (`target`), which there are (`presets`), what feature bits say (`features`), what things cost
(`costs`). Imports nothing of `lowering`; everything that decides or emits imports it."""
