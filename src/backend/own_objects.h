// What every backend does with the objects that it hands out and gets back.
#pragma once

#include <cstdint>
#include <limits>
#include <typeinfo>

#include "detrun/error.h"

namespace detrun {

/// Bytes of a buffer. Too many to count become too many to allocate: never a wrapped, small number.
inline std::uint64_t float_bytes(std::uint64_t n_floats) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return n_floats > kMax / sizeof(float) ? kMax : n_floats * sizeof(float);
}

/// The backend's own kind of weight, buffer or cache, a final class. One of another backend is a
/// programmer's error.
template <class To, class From>
To& cast(From& from) {
  DETRUN_CHECK(typeid(from) == typeid(To));
  return static_cast<To&>(from);
}

}  // namespace detrun
