// Runs one golden case on one instruction set.
#pragma once

#include <string>
#include <vector>

#include "golden_case.h"
#include "kernels/cpu/ops.h"

namespace golden {

/// The result of a case as bytes in the order of fixtures/golden/README.md. Operators that do not
/// depend on an instruction set (choice, sample, noise, hash, moe) give the same whatever `ops` is.
/// Error kUsage for an unknown operator or parameter.
class Result {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    bytes_.insert(bytes_.end(), bytes, bytes + values.size() * sizeof(T));
  }
  template <class T>
  void add(T value) {
    add(std::vector<T>{value});
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

Result run_case(const Case& c, const detrun::kernels::CpuOps& ops);

/// XXH3-128 of the result.
std::string result_hash(const Case& c, const detrun::kernels::CpuOps& ops);

// One function a family; each returns false when the operator is not its own.
bool run_product(const Case& c, const detrun::kernels::CpuOps& ops, Result& out);
bool run_row(const Case& c, const detrun::kernels::CpuOps& ops, Result& out);
bool run_attention(const Case& c, const detrun::kernels::CpuOps& ops, Result& out);
bool run_choice(const Case& c, const detrun::kernels::CpuOps& ops, Result& out);

}  // namespace golden
