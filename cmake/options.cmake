# Compiler settings for every target, and the sanitizer builds.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(TODOKE_SANITIZE "" CACHE STRING "Sanitizers, such as address,undefined or thread")

find_program(TODOKE_CCACHE ccache)
if(TODOKE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # base_dir and the prefix map make a hit possible from another clone of the project.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${TODOKE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
                    -Wunused -Woverloaded-virtual -Wconversion -Wsign-conversion -Wdouble-promotion
                    -Wformat=2 -Wimplicit-fallthrough -Werror
                    -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these falsely inside coroutine frames and inlined standard containers.
  add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds -Wno-mismatched-new-delete)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" OR CMAKE_BUILD_TYPE STREQUAL "Release")
  # What a flaw in the memory can be used for gets smaller: the library checks its preconditions (an index, a front()), the stack
  # can't be jumped over, calls and returns land where one begins, and what the linker fills in is read-only before main().
  # tests/e2e/hardening_test.cpp reads the binary.
  add_compile_options(-D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
  endif()
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)
endif()
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_SEPARATE_COMPILATION)

# Several files of a target are compiled as one: what they include is read once.
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Anonymous namespaces of a file are those of a header for the compiler then.
  add_compile_options(-Wno-subobject-linkage)
endif()

option(TODOKE_FUZZ "Build libFuzzer targets; needs clang" OFF)
if(TODOKE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

if(TODOKE_SANITIZE)
  add_compile_options(-fsanitize=${TODOKE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TODOKE_SANITIZE})
endif()

# mold links the larger binaries several times faster where it is installed.
find_program(TODOKE_MOLD mold)
if(TODOKE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
