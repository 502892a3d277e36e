// See system.h. Nothing here decides anything: it writes down what was found.
#include "host/system.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "detrun/host.h"
#include "detrun/text.h"

namespace detrun {
namespace {

constexpr std::size_t kSmallFileMax = std::size_t{1} << 20;

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Value of the first "name<tab>: value" line.
std::optional<std::string_view> colon_value(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (trim(line.substr(0, colon)) == name) return trim(line.substr(colon + 1));
  }
  return std::nullopt;
}

bool cpu_flag_matters(std::string_view flag) {
  static constexpr std::array<std::string_view, 13> kExact = {
      "sse4_1", "sse4_2",  "fma",     "f16c", "avx",  "avx2", "avx_vnni",
      "asimd",  "asimdhp", "asimddp", "i8mm", "bf16", "sve"};
  return std::find(kExact.begin(), kExact.end(), flag) != kExact.end() ||
         flag.starts_with("avx512") || flag.starts_with("amx");
}

std::string flags_that_matter(std::string_view flags) {
  std::vector<std::string> found;
  while (!(flags = trim(flags)).empty()) {
    const std::string_view flag = flags.substr(0, flags.find(' '));
    flags.remove_prefix(flag.size());
    if (cpu_flag_matters(flag)) found.emplace_back(flag);
  }
  std::sort(found.begin(), found.end());
  std::string joined;
  for (const std::string& flag : found) joined += (joined.empty() ? "" : " ") + flag;
  return joined;
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::string ascii_only(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string read_small_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (!file) return {};
  std::string text;
  std::array<char, 4096> block;
  std::size_t n = 0;
  while (text.size() < kSmallFileMax &&
         (n = std::fread(block.data(), 1, block.size(), file.get())) > 0) {
    text.append(block.data(), n);
  }
  return text;
}

Json describe_cpu(std::string_view cpuinfo) {
  struct Row {
    std::string_view name_in_file, name;
  };
  static constexpr std::array<Row, 8> kRows = {{{"model name", "model"},
                                                {"vendor_id", "vendor"},
                                                {"cpu family", "family"},
                                                {"model", "model_number"},
                                                {"stepping", "stepping"},
                                                {"microcode", "microcode"},
                                                {"CPU implementer", "implementer"},
                                                {"CPU part", "part"}}};
  Json cpu = Json::object();
  for (const Row& row : kRows) {
    if (const auto value = colon_value(cpuinfo, row.name_in_file)) {
      cpu.set(row.name, Json::bytes(*value));
    }
  }
  for (const std::string_view name : {"flags", "Features"}) {
    if (const auto flags = colon_value(cpuinfo, name)) {
      cpu.set("flags", ascii_only(flags_that_matter(*flags)));
    }
  }
  return cpu;
}

std::string status_line(std::string_view status, std::string_view name) {
  return std::string(colon_value(status, name).value_or(std::string_view()));
}

std::string container_id(std::string_view text, std::string_view folder) {
  constexpr std::size_t kDigits = 64;
  std::size_t run = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && is_hex(text[i])) {
      ++run;
      continue;
    }
    if (run == kDigits && text.substr(0, i - kDigits).ends_with(folder)) {
      return std::string(text.substr(i - kDigits, kDigits));
    }
    run = 0;
  }
  return {};
}

Json describe_fp_control(std::uint32_t found) {
  std::array<char, 16> hex;
  std::snprintf(hex.data(), hex.size(), "0x%x", found);
  Json control = Json::object();
#if defined(__x86_64__)
  static constexpr std::array<const char*, 4> kRounding = {"nearest", "down", "up", "zero"};
  control.set("register", "mxcsr");
  control.set("denormals_are_zero", static_cast<int>((found >> 6) & 1U));
  control.set("flush_to_zero", static_cast<int>((found >> 15) & 1U));
  control.set("rounding", kRounding[(found >> 13) & 3U]);
#elif defined(__aarch64__)
  static constexpr std::array<const char*, 4> kRounding = {"nearest", "up", "down", "zero"};
  control.set("register", "fpcr");
  control.set("flush_to_zero", static_cast<int>((found >> 24) & 1U));
  control.set("rounding", kRounding[(found >> 22) & 3U]);
#endif
  control.set("value", hex.data());
  return control;
}

bool environment_matters(std::string_view name) {
  // NVIDIA_ is no prefix here: NVIDIA_API_KEY is a secret and has no place in a ledger.
  static constexpr std::array<std::string_view, 12> kPrefixes = {
      "CUDA_", "CUBLAS",    "CUDNN_", "OMP_", "GOMP_",   "KMP_",
      "MKL_",  "OPENBLAS_", "BLIS_",  "LD_",  "MALLOC_", "DETRUN_"};
  static constexpr std::array<std::string_view, 4> kNames = {
      "GLIBC_TUNABLES", "NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES",
      "NVIDIA_DRIVER_CAPABILITIES"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::map<std::string, std::string> environment_that_matters() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair(*entry);
    const std::string_view name = pair.substr(0, pair.find('='));
    if (name.size() < pair.size() && environment_matters(name)) {
      found.emplace(name, pair.substr(name.size() + 1));
    }
  }
  return found;
}

std::string operator_name() {
  const uid_t uid = geteuid();
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* result = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &result) == 0 && result != nullptr &&
      result->pw_name != nullptr && is_utf8(result->pw_name)) {
    return result->pw_name;
  }
  return std::to_string(uid);
}

}  // namespace detrun
