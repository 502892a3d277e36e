# What a cross build has instead of libraries: the host's own headers, where they are nothing but
# headers, copied into the build tree. The host's include folder itself must not be searched by a
# cross compiler: it holds the host's C library too. Included by the top CMakeLists.txt.
set(DETRUN_HOST_INCLUDE /usr/include CACHE PATH "where spdlog, fmt, doctest, xxhash.h are")
set(headers ${CMAKE_BINARY_DIR}/host_headers)

foreach(entry spdlog fmt doctest xxhash.h xxh3.h)
  if(NOT EXISTS ${DETRUN_HOST_INCLUDE}/${entry})
    message(FATAL_ERROR "${DETRUN_HOST_INCLUDE}/${entry} is missing: the cross build uses the "
                        "headers that scripts/install_packages.sh installs for the host")
  endif()
  file(COPY ${DETRUN_HOST_INCLUDE}/${entry} DESTINATION ${headers})
endforeach()

find_package(Threads REQUIRED)

# detrun_headers(TARGET DEFINITION ...): an imported target that is only headers.
function(detrun_headers target)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${headers})
  target_compile_definitions(${target} INTERFACE ${ARGN})
endfunction()
detrun_headers(PkgConfig::XXHASH XXH_INLINE_ALL)
detrun_headers(spdlog::spdlog SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
detrun_headers(doctest::doctest)
