// See shared_library.h.
#include "backend/shared_library.h"

#include <dlfcn.h>

#include <utility>

namespace detrun {

std::optional<SharedLibrary> SharedLibrary::open(std::span<const char* const> names,
                                                 std::string& why) {
  for (const char* name : names) {
    // Not unloaded before the end: libraries of a driver leave threads and exit handlers behind.
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) return SharedLibrary(handle, name);
    const char* error = dlerror();
    if (why.empty()) why = error == nullptr ? std::string(name) + " does not open" : error;
  }
  return std::nullopt;
}

SharedLibrary::SharedLibrary(SharedLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* SharedLibrary::address(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace detrun
