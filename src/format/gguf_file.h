// A GGUF file over bytes that are already in memory: what ModelFile::open and the fuzz target
// share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "detrun/model_file.h"
#include "format/file_bytes.h"

namespace detrun {

/// Parses bytes that stay valid as long as the result. `path` is for messages only.
/// check_unchanged() and release() of the result do nothing.
std::unique_ptr<ModelFile> parse_gguf(const std::string& path, std::span<const std::byte> bytes);

/// Parses a file and keeps it open and in memory.
std::unique_ptr<ModelFile> parse_gguf(const std::string& path, FileBytes file);

}  // namespace detrun
