"""Machines: what one is (`target`), which there are (`machines`, `processors`), how a name finds one (`presets`), what feature
bits say (`features`), what things cost (`costs`). Imports nothing of `lowering`; what decides or emits imports it."""
