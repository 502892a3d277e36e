# The libraries of a program that is carried to other machines: archives and headers instead of
# shared objects, so that it needs glibc 2.34 and nothing else. Included by the top CMakeLists.txt
# instead of looking for the shared ones.
find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

# detrun_archive(TARGET NAME LINK ...): an imported target that is lib<NAME>.a.
function(detrun_archive target name)
  find_library(DETRUN_ARCHIVE_${name} lib${name}.a REQUIRED)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(${target} INTERFACE ${DETRUN_ARCHIVE_${name}} ${ARGN})
endfunction()
detrun_archive(OpenSSL::Crypto crypto ${CMAKE_DL_LIBS} Threads::Threads)
detrun_archive(PkgConfig::SQLITE sqlite3 m ${CMAKE_DL_LIBS} Threads::Threads)
detrun_archive(PkgConfig::XXHASH xxhash)
detrun_archive(PkgConfig::PCRE2 pcre2-8)
detrun_archive(PkgConfig::UTF8PROC utf8proc)
# Debian has spdlog and fmt as headers and as shared objects only.
add_library(spdlog::spdlog INTERFACE IMPORTED GLOBAL)
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

# detrun_portable(TARGET): its own libstdc++, too. Parts that nobody calls want a newer glibc: they
# go, and so do symbols: nvcc names them after paths, and the build id is of all that is linked.
function(detrun_portable target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/packaging/find_object.cpp)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections -s)
endfunction()
