// The list of golden cases: which parameters are covered. Appending is free; changing or removing
// a line is not, because its hash is frozen with version 1.
#include <array>

#include "golden_case.h"

namespace golden {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

/// Takes one of a list in turn, so that combinations follow from lengths that share no divisor.
template <std::size_t N>
const char* turn(const std::array<const char*, N>& list, std::uint64_t i) {
  return list[i % N];
}

class List {
 public:
  void add(const char* op, Keys keys) {
    keys.emplace_back("seed", std::to_string(next_seed_++));
    cases_.push_back({op, std::move(keys), {}});
  }
  std::vector<Case> take() { return std::move(cases_); }

 private:
  std::vector<Case> cases_;
  std::uint64_t next_seed_ = 1;
};

constexpr std::uint64_t kEach = 105;  // cases an operator

void add_float_products(List& list) {
  constexpr std::array<const char*, 17> kLengths = {"1",  "2",  "7",   "8",   "31", "32",
                                                    "33", "63", "64",  "65",  "72", "80",
                                                    "96", "97", "112", "300", "576"};
  constexpr std::array<const char*, 3> kKinds = {"plain", "edgy", "zero"};
  for (const char* type : {"F32", "F16", "BF16"}) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      // Where both are tiny every product underflows to -0, and the result is +0.
      const bool tiny = i % 10 == 9 && std::string_view(type) != "F16";
      const char* w = tiny ? "under" : i % 5 < 2 ? "edgy" : "plain";
      const char* x = tiny ? "over" : i < 90 ? turn(kKinds, i % 2) : turn(kKinds, i);
      list.add("product", {{"type", type},
                           {"n", std::to_string(1 + i % 4)},
                           {"k", tiny ? std::to_string(32 + i / 10) : turn(kLengths, i)},
                           {"x", x},
                           {"w", w}});
    }
  }
}

void add_integer_products(List& list) {
  struct Type {
    const char* name;
    std::uint64_t block;
  };
  constexpr Type kTypes[] = {{"Q8_0", 32},  {"Q4_0", 32},   {"Q4_1", 32},  {"Q5_0", 32},
                             {"Q5_1", 32},  {"IQ4_NL", 32}, {"Q2_K", 256}, {"Q3_K", 256},
                             {"Q4_K", 256}, {"Q5_K", 256},  {"Q6_K", 256}, {"IQ4_XS", 256}};
  constexpr std::uint64_t kGroups[] = {1, 2, 3, 7, 8, 9, 17};
  constexpr std::array<const char*, 4> kInputs = {"plain", "edgy", "wide", "plain"};
  for (const Type& type : kTypes) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const std::uint64_t groups = type.block == 256 && i % 7 == 6 ? 4 : kGroups[i % 7];
      const char* x = i % 20 == 19 ? "tiny" : i % 50 == 17 ? "zero" : turn(kInputs, i);
      list.add("product", {{"type", type.name},
                           {"n", std::to_string(type.block == 256 ? 1 + i % 2 : 1 + i % 4)},
                           {"k", std::to_string(groups * type.block)},
                           {"x", x},
                           {"w", i % 10 == 4   ? "low"
                                 : i % 10 == 7 ? "high"
                                               : "random"}});
    }
  }
}

void add_functions(List& list) {
  for (const char* op : {"exp", "log", "tanh", "erf", "sigmoid", "silu", "gelu_tanh", "gelu_erf"}) {
    const std::string name = op;
    const bool every_nan = name == "exp" || name == "log" || name == "tanh" || name == "erf";
    const std::array<const char*, 6> kinds = {
        "plain", "edgy", "wide", every_nan ? "bits" : "wide", name == "log" ? "positive" : "plain",
        "tiny"};
    for (std::uint64_t i = 0; i < kEach; ++i) {
      list.add(op, {{"n", std::to_string(1 + i * 7 % 90)}, {"x", turn(kinds, i)}});
    }
  }
  constexpr std::array<const char*, 4> kCaps = {"30", "50", "1", "0.5"};
  constexpr std::array<const char*, 3> kKinds = {"wide", "edgy", "plain"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add(
        "softcap",
        {{"n", std::to_string(1 + i * 7 % 90)}, {"x", turn(kKinds, i)}, {"cap", turn(kCaps, i)}});
  }
}

void add_rows(List& list) {
  constexpr std::array<const char*, 13> kLengths = {"1",  "2",  "7",  "31",  "32",  "33", "63",
                                                    "64", "65", "96", "127", "128", "576"};
  constexpr std::array<const char*, 4> kKinds = {"plain", "edgy", "wide", "tiny"};
  constexpr std::array<const char*, 3> kEps = {"0.00001", "0.000001", "0.001"};
  constexpr std::array<const char*, 4> kFactors = {"0.125", "1.7", "-3", "0.1"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("sum32", {{"n", turn(kLengths, i)}, {"x", turn(kKinds, i)}});
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("rmsnorm", {{"n", turn(kLengths, i)}, {"x", turn(kKinds, i)}, {"eps", turn(kEps, i)}});
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("layernorm", {{"n", turn(kLengths, i)},
                           {"x", turn(kKinds, i)},
                           {"eps", turn(kEps, i)},
                           {"bias", i % 2 == 0 ? "0" : "1"}});
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("elementwise",
             {{"n", turn(kLengths, i)}, {"x", turn(kKinds, i)}, {"factor", turn(kFactors, i)}});
  }
  constexpr std::array<const char*, 8> kBlocks = {"plain", "edgy", "tiny",  "wide",
                                                  "zero",  "ties", "above", "below"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("quantize", {{"k", std::to_string(32 * (1 + i % 9))}, {"x", turn(kBlocks, i)}});
  }
  constexpr std::array<const char*, 5> kInputs = {"plain", "edgy", "tiny", "wide", "zero"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("kv", {{"n", turn(kLengths, i)},
                    {"x", turn(kInputs, i % 5 == 1 && i % 4 != 3 ? 0 : i)},
                    {"kv", i % 4 == 3 ? "f32" : "f16"}});
  }
}

void add_attention(List& list) {
  constexpr std::array<const char*, 9> kHeads = {"4",  "8",   "64",  "72", "80",
                                                 "96", "112", "128", "256"};
  constexpr std::uint64_t kVisible[] = {1, 2, 31, 63, 64, 65, 127, 128, 129, 150};
  constexpr std::array<const char*, 7> kCaps = {"0", "0", "0", "30", "0", "2", "0"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    const std::uint64_t visible = kVisible[i % 10];
    // Windows: starts inside a block, at its edges, and beyond the first block.
    const std::uint64_t first = i % 3 != 1 ? 0
                                           : std::array{std::uint64_t{1}, visible - 1, visible / 2,
                                                        std::uint64_t{64}}[i / 3 % 4];
    list.add("attention", {{"d", turn(kHeads, i)},
                           {"first", std::to_string(first < visible ? first : visible - 1)},
                           {"visible", std::to_string(visible)},
                           {"kv", i % 4 == 3 ? "f32" : "f16"},
                           {"x", i % 5 == 2    ? "wide"
                                 : i % 11 == 5 ? "edgy"
                                               : "plain"},
                           {"softcap", turn(kCaps, i)},
                           {"sink", i % 4 == 2 ? "1" : "0"}});
  }
}

void add_rope(List& list) {
  constexpr std::uint64_t kHeads[] = {4, 8, 64, 72, 80, 96, 112, 128, 256};
  constexpr std::array<const char*, 4> kThetas = {"10000", "500000", "1000000", "2"};
  constexpr std::array<const char*, 11> kPositions = {"0",   "1",   "2",    "63",   "64",  "65",
                                                      "511", "999", "2047", "3000", "4095"};
  constexpr std::array<const char*, 4> kScalings = {"none", "linear", "yarn", "factors"};
  constexpr std::array<const char*, 3> kKinds = {"plain", "plain", "edgy"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    const std::uint64_t d = kHeads[i % 9];
    list.add("rope", {{"d", std::to_string(d)},
                      {"n", std::to_string(i % 5 == 4 ? d / 2 : d)},
                      {"position", turn(kPositions, i)},
                      {"theta", turn(kThetas, i / 2)},
                      {"pairs", i % 2 == 0 ? "adjacent" : "halves"},
                      {"scaling", turn(kScalings, i / 3)},
                      {"x", turn(kKinds, i)}});
  }
  for (std::uint64_t i = 0; i < 8; ++i) {  // far positions
    list.add("rope", {{"d", "4"},
                      {"n", "4"},
                      {"position", i % 2 == 0 ? "131071" : "1048575"},
                      {"theta", turn(kThetas, i / 2)},
                      {"pairs", i % 2 == 0 ? "adjacent" : "halves"},
                      {"scaling", turn(kScalings, i / 2)},
                      {"x", "plain"}});
  }
}

void add_moe(List& list) {
  constexpr std::uint64_t kExperts[] = {2, 8, 32, 33, 60, 64, 128};
  constexpr std::uint64_t kChosen[] = {1, 2, 4, 6, 8};
  constexpr std::array<const char*, 3> kGatings = {"softmax", "sigmoid", "chosen"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    const std::uint64_t e = kExperts[i % 7];
    const std::uint64_t k = kChosen[i % 5] < e ? kChosen[i % 5] : e;
    list.add("moe", {{"e", std::to_string(e)},
                     {"k", std::to_string(k)},
                     {"gating", turn(kGatings, i)},
                     {"bias", i % 4 == 3 ? "1" : "0"},
                     {"norm", i % 2 == 0 ? "1" : "0"},
                     {"scale", i % 5 == 1 ? "2.5" : "1"},
                     {"d", std::to_string(1 + i % 40)},
                     {"x", i % 6 == 5 ? "edgy" : "plain"}});
  }
}

void add_choices(List& list) {
  constexpr std::array<const char*, 8> kSizes = {"1", "2", "31", "32", "33", "64", "500", "1024"};
  constexpr std::array<const char*, 4> kKinds = {"plain", "wide", "edgy", "zero"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("choice", {{"n", turn(kSizes, i)}, {"x", turn(kKinds, i)}});
  }
  constexpr std::array<const char*, 5> kTemps = {"1", "0.7", "0", "1.5", "0.001"};
  constexpr std::array<const char*, 4> kTopK = {"0", "40", "5", "1"};
  constexpr std::array<const char*, 3> kTypical = {"1", "1", "0.9"};
  constexpr std::array<const char*, 4> kTopP = {"1", "0.95", "0.5", "0.9"};
  constexpr std::array<const char*, 5> kMinP = {"0", "0.05", "0", "0.3", "0"};
  constexpr std::array<const char*, 3> kRepeat = {"1", "1.1", "1"};
  constexpr std::array<const char*, 4> kFrequency = {"0", "0", "0.2", "0"};
  constexpr std::array<const char*, 7> kPresence = {"0", "0.5", "0", "0", "0", "0", "0"};
  constexpr std::array<const char*, 3> kValues = {"plain", "wide", "plain"};
  for (std::uint64_t i = 0; i < 2 * kEach; ++i) {
    list.add("sample", {{"n", turn(kSizes, i + i / 8)},
                        {"x", turn(kValues, i)},
                        {"temp", turn(kTemps, i)},
                        {"top_k", turn(kTopK, i)},
                        {"typical", turn(kTypical, i)},
                        {"top_p", turn(kTopP, i / 2)},
                        {"min_p", turn(kMinP, i / 3)},
                        {"repeat", turn(kRepeat, i / 2)},
                        {"frequency", turn(kFrequency, i / 5)},
                        {"presence", turn(kPresence, i)},
                        {"rng", std::to_string(i % 3 == 0 ? i : i * 0x9e3779b97f4a7c15ull)},
                        {"step", std::to_string(i % 4 == 3 ? (i << 32) + 7 : i)},
                        {"history", std::to_string(i % 5 * 16)}});
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("noise", {{"rng", std::to_string(i % 3 == 0 ? i : i * 0x9e3779b97f4a7c15ull)},
                       {"step", std::to_string(i % 4 == 3 ? (i << 33) + 1 : i)},
                       {"id", std::to_string(i * 1009 % 151936)}});
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("hash", {{"n", std::to_string(1 + i * i * 3 % 1100)}, {"x", turn(kKinds, i)}});
  }
}

void add_compositions(List& list) {
  constexpr std::array<const char*, 4> kKinds = {"plain", "wide", "edgy", "tiny"};
  constexpr std::array<const char*, 3> kGates = {"silu", "gelu_tanh", "gelu_erf"};
  constexpr std::array<const char*, 7> kSizes = {"2", "31", "32", "33", "64", "500", "1024"};
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("moe_shared", {{"d", std::to_string(1 + i * 7 % 90)},
                            {"gate", i % 2 == 0 ? "1" : "0"},
                            {"x", turn(kKinds, i)}});
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add(
        "gated",
        {{"n", std::to_string(1 + i * 7 % 90)}, {"f", turn(kGates, i)}, {"x", turn(kKinds, i)}});
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    list.add("confidence", {{"n", turn(kSizes, i)}, {"x", turn(kKinds, i)}});
  }
}

}  // namespace

std::vector<Case> all_cases() {
  List list;
  add_float_products(list);
  add_integer_products(list);
  add_functions(list);
  add_rows(list);
  add_attention(list);
  add_rope(list);
  add_moe(list);
  add_choices(list);
  add_compositions(list);
  return list.take();
}

}  // namespace golden
