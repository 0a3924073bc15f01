# todoke_blake3: the official C implementation. Debian has no C package of it, but ships the sources inside librust-blake3-dev.
file(GLOB blake3_dirs /usr/share/cargo/registry/blake3-*/c)
if(NOT blake3_dirs)
  message(FATAL_ERROR "BLAKE3's C sources are missing: install librust-blake3-dev (scripts/setup does it)")
endif()
list(GET blake3_dirs -1 blake3_dir)

set(blake3_sources blake3.c blake3_dispatch.c blake3_portable.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  enable_language(ASM)
  list(APPEND blake3_sources blake3_sse2_x86-64_unix.S blake3_sse41_x86-64_unix.S blake3_avx2_x86-64_unix.S
                             blake3_avx512_x86-64_unix.S)
endif()
list(TRANSFORM blake3_sources PREPEND ${blake3_dir}/)

add_library(todoke_blake3 STATIC ${blake3_sources})
target_include_directories(todoke_blake3 SYSTEM PUBLIC ${blake3_dir})
# Not our code: its warnings are not ours to mend. This replaces the options of our own sources.
set_target_properties(todoke_blake3 PROPERTIES COMPILE_OPTIONS -w UNITY_BUILD OFF)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(todoke_blake3 PRIVATE BLAKE3_USE_NEON=0)
endif()
