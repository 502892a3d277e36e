// Known answers of every kernel of an instruction set, checked before it may be chosen.
#pragma once

#include <string>
#include <vector>

#include "backend/thread_pool.h"
#include "kernels/cpu/ops.h"

namespace detrun {

struct KnownAnswer {
  std::string operation;  ///< "matmul Q8_0", "attention f16", ...
  std::string xxh3;       ///< XXH3-128 of the output bytes, hex
};

/// Runs every kernel on fixed small inputs, on all threads of the pool or (nullptr) on this one.
/// Well under 5 ms.
std::vector<KnownAnswer> run_self_test(const kernels::CpuOps& ops, ThreadPool* pool = nullptr);

/// The constants: made once with the scalar reference, frozen with the contract's version.
const std::vector<KnownAnswer>& golden_answers();

/// The first operation whose bits are not the golden ones (the scalar reference has to give those
/// too, so equal to golden is equal to the reference); empty when all are.
std::string failed_self_test(const kernels::CpuOps& ops, ThreadPool* pool = nullptr);

}  // namespace detrun
