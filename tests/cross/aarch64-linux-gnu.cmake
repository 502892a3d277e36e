# Toolchain: AArch64 Linux from another machine, Debian's cross packages. Programs run in
# qemu-user. -DDETRUN_CROSS_COMPILER=clang: clang with the same C library.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(DETRUN_CROSS_COMPILER gcc CACHE STRING "gcc or clang")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DETRUN_CROSS_COMPILER)

if(DETRUN_CROSS_COMPILER STREQUAL "clang")
  set(CMAKE_CXX_COMPILER clang++)
  set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
else()
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
endif()
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
