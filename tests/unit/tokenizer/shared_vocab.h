// The published vocabularies beside the repository (../shared/tokenizers). A test that needs one
// says so and passes when the folder is not there.
#pragma once

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>

#include "detrun/model_file.h"
#include "detrun/tokenizer.h"

namespace detrun::test {

inline std::string shared_path(const std::string& name) {
  return std::string(DETRUN_SOURCE_DIR) + "/../shared/" + name;
}

/// "tokenizers/ggml-vocab-NAME.gguf" as a tokenizer; null, and a printed line, when absent.
inline std::unique_ptr<Tokenizer> shared_vocab(const std::string& name) {
  const std::string path = shared_path("tokenizers/ggml-vocab-" + name + ".gguf");
  if (!std::filesystem::exists(path)) {
    std::cout << "SKIPPED: " << path << " is not there\n";
    return nullptr;
  }
  return Tokenizer::create(*ModelFile::open(path));
}

inline std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace detrun::test
