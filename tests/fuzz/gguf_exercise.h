// Runs everything a model file offers over arbitrary bytes: shared by the fuzz target and by the
// mutation test. The only outcomes are success and an Error of kind kUsage; the sanitizers and the
// checks below find the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "detrun/error.h"
#include "detrun/model_file.h"
#include "format/gguf_file.h"

namespace detrun::test {

/// Ends the program when `holds` is false, so that a fuzzer keeps the input.
inline void must(bool holds) {
  if (!holds) std::abort();
}

inline bool lies_inside(const void* start, std::size_t size, std::span<const std::byte> bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(start);
  const auto low = reinterpret_cast<std::uintptr_t>(bytes.data());
  return size == 0 || (at >= low && size <= bytes.size() && at - low <= bytes.size() - size);
}

/// Calls a getter; a refusal of the value's kind or range is as good as a value.
template <typename F>
void allow_refusal(F&& getter) {
  try {
    getter();
  } catch (const Error& error) {
    must(error.kind() == ExitCode::kUsage);
  }
}

inline void exercise_key(const ModelFile& file, std::string_view key,
                         std::span<const std::byte> bytes) {
  must(file.type_of(key).has_value());
  must(meta_type_name(*file.type_of(key)) != "?");
  must(file.array_of(key).has_value() == (*file.type_of(key) == MetaType::kArray));
  allow_refusal([&] { must(file.get_u64(key).has_value()); });
  allow_refusal([&] { must(file.get_f64(key).has_value()); });
  allow_refusal([&] { must(file.get_bool(key).has_value()); });
  allow_refusal([&] {
    const auto text = file.get_string(key);
    must(text && lies_inside(text->data(), text->size(), bytes));
  });
  allow_refusal([&] {
    const auto texts = file.get_strings(key);
    must(texts && texts->size() == file.array_of(key)->count);
    for (const std::string_view text : *texts) {
      must(lies_inside(text.data(), text.size(), bytes));
    }
  });
  allow_refusal([&] { must(file.get_f64s(key)->size() == file.array_of(key)->count); });
  allow_refusal([&] { must(file.get_i64s(key)->size() == file.array_of(key)->count); });
  allow_refusal([&] { must(get_u64_per_layer(file, key, 2)->size() == 2); });
}

/// True when the bytes are a model file, false when they were refused.
inline bool exercise_gguf(std::span<const std::byte> bytes) {
  try {
    const auto file = parse_gguf("fuzz.gguf", bytes);
    for (const std::string& key : file->keys()) exercise_key(*file, key, bytes);
    must(!file->get_u64("\n").has_value());
    for (const TensorInfo& tensor : file->tensors()) {
      must(file->find_tensor(tensor.name) == &tensor);
      must(!tensor.data.empty() && lies_inside(tensor.data.data(), tensor.data.size(), bytes));
      must(tensor.row_elems() > 0 && tensor.n_rows() > 0);
      must(tensor.data.size() % tensor.n_rows() == 0);
      // No two tensors share a byte.
      for (const TensorInfo& other : file->tensors()) {
        must(&other == &tensor || other.data.data() >= tensor.data.data() + tensor.data.size() ||
             tensor.data.data() >= other.data.data() + other.data.size());
        if (file->tensors().size() > 64) break;  // quadratic: small files only
      }
    }
    return true;
  } catch (const Error& error) {
    must(error.kind() == ExitCode::kUsage);
    must(std::string_view(error.what()).starts_with("fuzz.gguf: "));
    return false;
  }
}

}  // namespace detrun::test
