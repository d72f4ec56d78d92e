"""Folders for other build systems: a model's files and recorded calls of it, in the layout of CMake, make, ESP-IDF, Zephyr,
PlatformIO or Arduino. It may import `aot` and the `tools` beside what lies below them; `stages` and `models` import it.
"""
