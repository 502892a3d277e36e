// A shared library that may be missing: opened while the program runs, so that machines without it
// run everything else. Which functions it has is the caller's business.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace detrun {

class SharedLibrary {
 public:
  /// The first of `names` that opens, searched as the loader searches ("libx.so.1" or a path);
  /// nothing, and in `why` one sentence, when none does.
  static std::optional<SharedLibrary> open(std::span<const char* const> names, std::string& why);
  SharedLibrary(SharedLibrary&& other) noexcept;
  SharedLibrary& operator=(SharedLibrary&& other) noexcept;
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  ~SharedLibrary();

  /// The name that opened.
  const std::string& name() const { return name_; }
  /// Sets `function` to the symbol of this name; false when the library lacks it.
  template <class Function>
  bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));
    return function != nullptr;
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* address(const char* symbol) const;

  void* handle_;
  std::string name_;
};

}  // namespace detrun
