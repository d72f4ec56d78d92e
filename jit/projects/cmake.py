"""A CMake project: a static library that others add as a folder or find as an installed package, with the example as a test."""
from __future__ import annotations

from .compilers import Compiler, compiler_of
from .contents import MAIN, Contents, at, readme

LISTS = """\
# @description@.
#
# add_subdirectory() of this folder, or find_package(@prefix@) once it is installed, gives the library tosaic::@stem@.
cmake_minimum_required(VERSION 3.16)
project(@prefix@ VERSION @version@ LANGUAGES C)

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  set(is_top_level ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
  endif()
else()
  set(is_top_level OFF)
endif()

add_library(@prefix@ STATIC
@sources@)
add_library(tosaic::@stem@ ALIAS @prefix@)
@object@set_target_properties(@prefix@ PROPERTIES
  EXPORT_NAME @stem@ LINKER_LANGUAGE C C_STANDARD 99 C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
include(GNUInstallDirs)
target_include_directories(@prefix@ PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
@mathematics@
# The example without a main: call @prefix@_example() from your own, on a board.
add_library(@prefix@_example STATIC EXCLUDE_FROM_ALL example/@prefix@_example.c)
target_include_directories(@prefix@_example PUBLIC example)
target_link_libraries(@prefix@_example PUBLIC @prefix@)
set_target_properties(@prefix@_example PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)

# A system without files has no main of its own here.
set(has_system ${is_top_level})
if(CMAKE_SYSTEM_NAME STREQUAL "Generic")
  set(has_system OFF)
endif()
option(@upper@_EXAMPLE "Build the example of @prefix@, a program that checks the model" ${has_system})
if(@upper@_EXAMPLE)
  add_executable(@stem@_example example/main.c)
  target_link_libraries(@stem@_example PRIVATE @prefix@_example)
  enable_testing()
  add_test(NAME @stem@_example COMMAND @stem@_example)
  if(is_top_level)
    add_custom_target(check COMMAND @stem@_example COMMENT "Running the recorded calls of @prefix@" VERBATIM)
  endif()
endif()

option(@upper@_INSTALL "Install @prefix@" ${is_top_level})
if(@upper@_INSTALL)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/@prefix@)
  install(TARGETS @prefix@ EXPORT @prefix@ ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES include/@prefix@.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT @prefix@ NAMESPACE tosaic:: FILE @prefix@-config.cmake DESTINATION ${package})
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file(@prefix@-config-version.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/@prefix@-config-version.cmake DESTINATION ${package})
endif()
"""

TOOLCHAIN = """\
# The compiler for which the model's code was made. -DCMAKE_C_COMPILER=... names another one.
set(CMAKE_SYSTEM_NAME @system@)
set(CMAKE_SYSTEM_PROCESSOR @processor@)
if(NOT CMAKE_C_COMPILER)
  set(CMAKE_C_COMPILER @compiler@)
endif()
set(CMAKE_C_FLAGS_INIT "@flags@")
@trial@"""

USE = """\
Another project takes the library by its folder:

```cmake
add_subdirectory(path/to/this/folder @prefix@)
target_link_libraries(application PRIVATE tosaic::@stem@)
```

or installed (`cmake --install build --prefix DIR`):

```cmake
find_package(@prefix@ REQUIRED)
target_link_libraries(application PRIVATE tosaic::@stem@)
```
"""

BARE_USE = """\
On a board, link `@prefix@_example` and call `@prefix@_example(say)` from your `main`, with a function that prints.

"""


def files(contents: Contents) -> dict[str, bytes]:
    """Return the folder's files."""
    compiler = compiler_of(contents.target)
    found = {"CMakeLists.txt": lists(contents).encode(), f"include/{contents.header_name}": contents.header,
             "example/main.c": contents.fill(MAIN).encode()}
    found |= at("src", contents.sources if contents.is_source else {**contents.sources, f"{contents.stem}.o": contents.code})
    found |= at("example", contents.example)
    configure = "cmake -B build"
    if compiler.is_cross:
        found["toolchain.cmake"] = toolchain(contents, compiler).encode()
        configure += " -DCMAKE_TOOLCHAIN_FILE=toolchain.cmake"
    use = contents.fill(USE)
    if compiler.system == "Generic":
        use = contents.fill(BARE_USE) + use
        commands = f"{configure}\ncmake --build build"
    else:
        commands = f"{configure}\ncmake --build build --target check"
    return found | {"README.md": readme(contents, "a CMake project", commands, use)}


def lists(contents: Contents) -> str:
    """Return the CMakeLists.txt."""
    names = [*contents.sources, *([] if contents.is_source else [f"{contents.stem}.o"])]
    external = f"set_source_files_properties(src/{contents.stem}.o PROPERTIES EXTERNAL_OBJECT ON)\n" * (not contents.is_source)
    mathematics = f"if(UNIX)\n  target_link_libraries({contents.prefix} PUBLIC m)\nendif()\n" * contents.needs_mathematics
    return contents.fill(LISTS, sources="\n".join(f"  src/{name}" for name in names), object=external, mathematics=mathematics)


def toolchain(contents: Contents, compiler: Compiler) -> str:
    """Return the file that names the compiler; for a target without a system, CMake links no trial program."""
    trial = "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n" * (compiler.system == "Generic")
    return contents.fill(TOOLCHAIN, system=compiler.system, processor=compiler.processor, compiler=f"{compiler.prefix}gcc",
                         flags=" ".join(compiler.flags), trial=trial)
