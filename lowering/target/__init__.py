"""Machines: their description (`target`), the known ones (`machines`, `processors`), the lookup by name (`presets`), feature
bits (`features`) and costs (`costs`). Imports nothing of `lowering`; the rooms that decide or emit import it.
"""
