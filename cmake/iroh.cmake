# todoke_iroh: the Rust crate src/gossip/iroh as a static library, where cargo 1.91 or newer and the crates can be had. Otherwise
# the target is not there, TODOKE_GOSSIP_LEFT_OUT says why, and the program is built without gossip.
#
# One release build serves all presets and worktrees: cargo builds in the user's cache, in a folder named by the lock file and the
# compiler's version, and the library is copied from there.
set(TODOKE_GOSSIP auto CACHE STRING "on: fail where gossip can't be built; off: leave it out")
set_property(CACHE TODOKE_GOSSIP PROPERTY STRINGS auto on off)

set(iroh_crate ${CMAKE_SOURCE_DIR}/src/gossip/iroh)
set(iroh_cargo_least 1.91)
set(TODOKE_GOSSIP_LEFT_OUT "")

function(todoke_find_iroh why folder)
  if(TODOKE_GOSSIP STREQUAL "off")
    set(${why} "switched off (TODOKE_GOSSIP)" PARENT_SCOPE)
    return()
  endif()
  find_program(TODOKE_CARGO cargo HINTS $ENV{HOME}/.cargo/bin)
  if(NOT TODOKE_CARGO)
    set(${why} "cargo ${iroh_cargo_least} or newer is not installed" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${TODOKE_CARGO} --version OUTPUT_VARIABLE version ERROR_QUIET)
  string(REGEX MATCH "[0-9]+[.][0-9]+" number "${version}")
  if(NOT number OR number VERSION_LESS iroh_cargo_least)
    set(${why} "cargo ${iroh_cargo_least} or newer is needed, '${number}' is installed" PARENT_SCOPE)
    return()
  endif()
  set(fetch ${TODOKE_CARGO} fetch --quiet --locked --manifest-path ${iroh_crate}/Cargo.toml)
  execute_process(COMMAND ${fetch} --offline RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing)
    execute_process(COMMAND ${fetch} TIMEOUT 300 RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(missing)
    set(${why} "its crates can't be downloaded (cargo fetch)" PARENT_SCOPE)
    return()
  endif()
  file(READ ${iroh_crate}/Cargo.lock lock)
  string(SHA256 key "${version}${lock}")
  string(SUBSTRING ${key} 0 16 key)
  set(cache $ENV{XDG_CACHE_HOME})
  if(NOT cache)
    set(cache $ENV{HOME}/.cache)
  endif()
  set(chosen ${cache}/todoke/cargo-${key})
  # A home that can't be written to: then each build folder has its own.
  execute_process(COMMAND ${CMAKE_COMMAND} -E make_directory ${chosen} RESULT_VARIABLE closed OUTPUT_QUIET ERROR_QUIET)
  if(NOT closed)
    execute_process(COMMAND ${CMAKE_COMMAND} -E touch ${chosen}/todoke.lock RESULT_VARIABLE closed OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(closed)
    set(chosen ${CMAKE_BINARY_DIR}/cargo)
  endif()
  set(${folder} ${chosen} PARENT_SCOPE)
endfunction()

# todoke_cargo(OUT COMMENT FILE ARGUMENTS...): the command that makes OUT, a copy of FILE in cargo's folder.
function(todoke_cargo out comment file)
  file(GLOB sources CONFIGURE_DEPENDS ${iroh_crate}/src/*.rs ${iroh_crate}/examples/*.rs)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DCARGO=${TODOKE_CARGO} -DCRATE=${iroh_crate} -DFOLDER=${iroh_folder} -DFILE=${file} -DOUT=${out}
            "-DARGUMENTS=${ARGN}" -P ${CMAKE_SOURCE_DIR}/cmake/run_cargo.cmake
    DEPENDS ${sources} ${iroh_crate}/Cargo.toml ${iroh_crate}/Cargo.lock ${CMAKE_SOURCE_DIR}/cmake/run_cargo.cmake
    COMMENT ${comment}
    VERBATIM)
endfunction()

todoke_find_iroh(TODOKE_GOSSIP_LEFT_OUT iroh_folder)
if(TODOKE_GOSSIP_LEFT_OUT)
  if(TODOKE_GOSSIP STREQUAL "on")
    message(FATAL_ERROR "gossip: ${TODOKE_GOSSIP_LEFT_OUT}")
  endif()
  message(STATUS "gossip: left out: ${TODOKE_GOSSIP_LEFT_OUT}")
else()
  set(iroh_library ${CMAKE_BINARY_DIR}/iroh/libtodoke_iroh.a)
  todoke_cargo(${iroh_library} "Building the gossip library with cargo (minutes, the first time)" libtodoke_iroh.a --lib)
  add_custom_target(todoke_iroh_build DEPENDS ${iroh_library})
  add_library(todoke_iroh STATIC IMPORTED GLOBAL)
  set_target_properties(todoke_iroh PROPERTIES IMPORTED_LOCATION ${iroh_library})
  target_include_directories(todoke_iroh INTERFACE ${iroh_crate}/include)
  target_link_libraries(todoke_iroh INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
  add_dependencies(todoke_iroh todoke_iroh_build)
endif()
