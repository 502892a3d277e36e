// A line of fixtures/golden/models.txt: a model, tokens, the hash of the logits.
#pragma once

#include <string>
#include <vector>

#include "detrun/backend.h"

namespace golden {

struct ModelCase {
  std::string path, tokens, kv, hash;
};

/// False for an empty line or a comment. Error kUsage for anything else that is no case.
bool parse_case(const std::string& line, ModelCase& c);

/// All logits, the tokens fed in chunks of 1, 2, 3, ...: decode and prefill at once. `root` is what
/// the path is relative to. Errors of the model's file and of the case.
std::vector<float> run_model(const ModelCase& c, const std::string& root, detrun::Backend& backend);

/// As the line has it.
std::string hash_of(const std::vector<float>& logits);

}  // namespace golden
