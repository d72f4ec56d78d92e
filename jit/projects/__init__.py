"""Folders for other build systems: a model's files and recorded calls of it, in the layout of CMake, make, ESP-IDF, Zephyr,
PlatformIO or Arduino. May import `aot`, `tools` and the packages below them; `stages` and `models` import it.
"""
